// Losses that are piecewise quadratic, of labels or of targets.
#pragma once

#include <algorithm>
#include <cmath>

#include "cpu/simd.hpp"

namespace slimsvm {

// Of labels y, in xi = 1 - y f: the slope is clamp(xi / width, least, most). Width 0 is the hinge.
// Of targets y, in xi = y - f: the same of what is left of xi beyond a tube, xi - clamp(xi, -tube, tube).
struct QuadraticLoss {
  double width, least, most, tube = 0;
  bool targets = false;
};

struct OfLabels {
  double width, least, most;

  explicit SLIM_INLINE OfLabels(const QuadraticLoss& loss) : width(loss.width), least(loss.least), most(loss.most) {}
  static SLIM_INLINE double missed(double y, double f) { return 1 - y * f; }
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
  static SLIM_INLINE double worse(double, double error) { return error; }
  static SLIM_INLINE double rounding(double units) { return units; }  // of y
  SLIM_INLINE double gain(double y, double a) const { return y * a; }
};

struct OfTargets {
  double width, least, most, tube;

  explicit SLIM_INLINE OfTargets(const QuadraticLoss& loss) : width(loss.width), least(loss.least), most(loss.most), tube(loss.tube) {}
  static SLIM_INLINE double missed(double y, double f) { return y - f; }
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
  static SLIM_INLINE double worse(double xi, double error) { return std::copysign(error, xi); }
  static SLIM_INLINE double rounding(double) { return 0x1p-33; }  // of y: targets are multiples of 2^-32
  SLIM_INLINE double gain(double y, double a) const { return y * a - tube * std::fabs(a); }
};

}  // namespace slimsvm
