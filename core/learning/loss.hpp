// Losses that are piecewise quadratic, of labels or of targets.
#pragma once

#include <algorithm>
#include <cmath>

#include "learning/panels.hpp"

namespace slimsvm {

// Of labels y, in xi = 1 - y f: the slope is clamp(xi / width, least, most). Width 0 is the hinge.
// Of targets y, in xi = y - f: the same of what is left of xi beyond a tube, xi - clamp(xi, -tube, tube).
struct QuadraticLoss {
  double width, least, most, tube = 0;
  bool targets = false;
};

struct LabelLoss {
  double width, least, most;

  explicit SLIM_INLINE LabelLoss(const QuadraticLoss& loss) : width(loss.width), least(loss.least), most(loss.most) {}
  static SLIM_INLINE double residual(double y, double f) { return 1 - y * f; }
  static SLIM_INLINE double side(double y) { return y; }
  SLIM_INLINE double slope(double xi) const {
    if (width == 0) return xi > 0 ? most : least;
    return std::min(std::max(xi / width, least), most);
  }
  SLIM_INLINE bool curved(double xi) const { return xi > least * width && xi < most * width; }
  SLIM_INLINE double value(double xi) const {
    const double s = slope(xi);
    return s == 0 && xi == xi ? 0.0 : s * (xi - 0.5 * width * s);  // NaN stays NaN
  }
  // What an error of the decision value may do to xi at worst.
  static SLIM_INLINE double worst(double, double error) { return error; }
  static SLIM_INLINE double rounding(double units) { return units; }  // of y
  SLIM_INLINE double gain(double y, double a) const { return y * a; }
};

struct TargetLoss {
  double width, least, most, tube;

  explicit SLIM_INLINE TargetLoss(const QuadraticLoss& loss) : width(loss.width), least(loss.least), most(loss.most), tube(loss.tube) {}
  static SLIM_INLINE double residual(double y, double f) { return y - f; }
  static SLIM_INLINE double side(double) { return 1; }
  SLIM_INLINE double beyond(double xi) const { return xi - std::min(std::max(xi, -tube), tube); }
  SLIM_INLINE double slope(double xi) const {
    const double far = beyond(xi);
    if (width == 0) return far > 0 ? most : far < 0 ? least : 0.0;
    return std::min(std::max(far / width, least), most);
  }
  SLIM_INLINE bool curved(double xi) const {
    const double far = beyond(xi);
    return (tube == 0 || far != 0) && far > least * width && far < most * width;
  }
  SLIM_INLINE double value(double xi) const {
    const double s = slope(xi);
    return s == 0 && xi == xi ? 0.0 : s * (beyond(xi) - 0.5 * width * s);
  }
  static SLIM_INLINE double worst(double xi, double error) { return std::copysign(error, xi); }
  static SLIM_INLINE double rounding(double) { return 0x1p-33; }  // of y: targets are multiples of 2^-32
  SLIM_INLINE double gain(double y, double a) const { return y * a - tube * std::fabs(a); }
};

// Duals a and curvatures h of one output in one panel; returns the loss. `Loss`: of labels or of targets.
template <class Real, class Loss>
struct LossAt {
  template <class Isa>
  static SLIM_INLINE double run(const Real* f, double bias, const double* y, const double* c, QuadraticLoss given, double* a, double* h) {
    const Loss loss(given);
    double value = 0;
    const double steepness = loss.width > 0 ? 1 / loss.width : 0.0;
    for (int r = 0; r < panel_rows; ++r) {
      const double xi = Loss::residual(y[r], static_cast<double>(f[r]) + bias);
      a[r] = c[r] * Loss::side(y[r]) * loss.slope(xi);
      h[r] = loss.curved(xi) ? c[r] * steepness : 0.0;
      value += c[r] * loss.value(xi);
    }
    return value;
  }
};

// Derivatives of the loss along a line: sum of -a q and of h q^2 at f + t q.
template <class Real, class Loss>
struct LossAlong {
  template <class Isa>
  static SLIM_INLINE void run(const Real* f, const Real* q, double bias, double turn, const double* y, const double* c, double t,
                              QuadraticLoss given, double* first, double* second) {
    const Loss loss(given);
    double slope = 0, bend = 0;
    const double steepness = loss.width > 0 ? 1 / loss.width : 0.0;
    for (int r = 0; r < panel_rows; ++r) {
      const double along = Loss::side(y[r]) * (static_cast<double>(q[r]) + turn);
      const double xi = Loss::residual(y[r], static_cast<double>(f[r]) + bias) - t * along;
      slope -= c[r] * along * loss.slope(xi);
      bend += loss.curved(xi) ? c[r] * steepness * along * along : 0.0;
    }
    *first += slope;
    *second += bend;
  }
};

}  // namespace slimsvm
