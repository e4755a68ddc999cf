// Newton's method for one linear machine with a piecewise quadratic loss, over few features in memory:
//
//   min_{w,b}  1/2 |w|^2 + sum_i c_i loss(1 - y_i (p_i.w + b)),   loss'(xi) = clamp(xi / width, least, most),
//
// or of targets, see `QuadraticLoss`. The squared hinge has width 1 and slopes from 0 on, the rounded hinge slopes from 0 to 1, least squares any slope.
// Learning solves thousands of such machines, each from the solution of the last: here a step costs its arithmetic only.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "linalg/cholesky.hpp"
#include "learning/loss.hpp"
#include "learning/panels.hpp"

namespace slimsvm {

struct SmoothMachine {
  const double* features;  // n x m
  int n, m;
  const double *y, *c;
  QuadraticLoss loss;
};

struct SmoothSolution {
  std::vector<double> w, f;  // w: weights, then the bias
  int steps = 0;
  bool converged = false, exact = true;  // exact: no digits of a step were lost
};

// Rows of a sum [p 1]'[p 1], collected so that many are added at once.
struct Curved {
  static constexpr int most = 128;
  int size, room, count = 0;
  std::vector<double> rows, gram;

  explicit Curved(int features) : size(features), room(room_for<double>(features)), rows(static_cast<std::size_t>(most) * room, 0.0) {}
  void clear() { gram.assign(static_cast<std::size_t>(room) * room, 0.0); }
  template <class Isa>
  SLIM_INLINE void add(const double* p, double factor) {
    double* row = rows.data() + static_cast<std::size_t>(count) * room;
    for (int j = 0; j < size - 1; ++j) row[j] = factor * p[j];
    row[size - 1] = factor;
    if (++count == most) flush<Isa>();
  }
  template <class Isa>
  SLIM_INLINE void flush() {
    SumOverRows<double>::template run<Isa>(rows.data(), room, rows.data(), room, count, size, size, gram.data(), room, true);
    count = 0;
  }
};

template <class Read>
struct SmoothNewton {
  // Squared pivots of a matrix with diagonal 1 below this leave too few digits of a step.
  static constexpr double worst_pivot = 1e-10;

  template <class Isa>
  static SLIM_INLINE void run(const SmoothMachine* problem, double tol, int max_steps, SmoothSolution* solution) {
    const SmoothMachine& machine = *problem;
    const Read loss(machine.loss);
    SmoothSolution& now = *solution;
    const int n = machine.n, m = machine.m, size = m + 1;
    std::vector<double> gradient(size), step(size), matrix(static_cast<std::size_t>(size) * size), scale(size), q(n);
    Curved curved(size);
    double cost = 0, last_gain = std::numeric_limits<double>::infinity();
    for (int i = 0; i < n; ++i) cost += machine.c[i];
    times<Isa>(machine, now.w.data(), now.f.data());
    while (now.steps < max_steps) {
      const double value = equations<Isa>(machine, loss, now, curved, gradient.data(), matrix.data());
      // Where few rows are curved the bias is hardly held: it goes no farther than a margin's width.
      double& corner = matrix[static_cast<std::size_t>(m) * size + m];
      corner = std::max(corner, std::abs(gradient[m])) + 1e-12 * cost;
      if (!solve(matrix, gradient, scale, step, size)) {
        now.exact = false;
        return;
      }
      double gain = 0;
      for (int j = 0; j < size; ++j) gain -= 0.5 * step[j] * gradient[j];
      // Below a relative gain of 1e-6 each step should square it; if not, rounding errors are all that is left.
      const bool stuck = gain > 0.5 * last_gain && gain < 1e-6 * value;
      const bool moving = gain > tol * value && !stuck;
      last_gain = gain;
      times<Isa>(machine, step.data(), q.data());
      // A step that gains next to nothing is taken whole: it squares what is left to gain.
      const double t = gain > tol * value ? line_search(machine, loss, now, step.data(), q.data(), 2e-3 * gain) : 1.0;
      for (int j = 0; j < size; ++j) now.w[j] += t * step[j];
      for (int i = 0; i < n; ++i) now.f[i] += t * q[i];
      ++now.steps;
      if (!moving) {
        now.converged = true;
        return;
      }
    }
  }

  template <class Isa>
  static SLIM_INLINE void times(const SmoothMachine& machine, const double* w, double* f) {
    constexpr int L = lanes<double, Isa>;
    using V = Vec<double, L>;
    const int m = machine.m;
    for (int i = 0; i < machine.n; ++i) {
      const double* p = machine.features + static_cast<std::size_t>(i) * m;
      V even{}, odd{};
      int j = 0;
      for (; j + 2 * L <= m; j += 2 * L) {
        even += load<V>(p + j) * load<V>(w + j);
        odd += load<V>(p + j + L) * load<V>(w + j + L);
      }
      double sum = w[m];
      for (; j < m; ++j) sum += p[j] * w[j];
      even += odd;
      for (int v = 0; v < L; ++v) sum += even[v];
      f[i] = sum;
    }
  }

  // Gradient and matrix of second derivatives (lower triangle); returns the objective.
  template <class Isa>
  static SLIM_INLINE double equations(const SmoothMachine& machine, const Read& loss, const SmoothSolution& now, Curved& curved,
                                      double* gradient, double* matrix) {
    const int m = machine.m, size = m + 1;
    const double root = 1 / std::sqrt(loss.width);
    curved.clear();
    double value = 0;
    for (int j = 0; j < m; ++j) {
      gradient[j] = now.w[j];
      value += 0.5 * now.w[j] * now.w[j];
    }
    gradient[m] = 0;
    for (int i = 0; i < machine.n; ++i) {
      const double* p = machine.features + static_cast<std::size_t>(i) * m;
      const double xi = Read::residual(machine.y[i], now.f[i]);
      value += machine.c[i] * loss.value(xi);
      const double a = machine.c[i] * Read::side(machine.y[i]) * loss.slope(xi);
      if (a != 0) {
        for (int j = 0; j < m; ++j) gradient[j] -= a * p[j];
        gradient[m] -= a;
      }
      if (loss.curved(xi) && machine.c[i] != 0) curved.add<Isa>(p, std::sqrt(machine.c[i]) * root);
    }
    curved.flush<Isa>();
    for (int j = 0; j < size; ++j) {
      const double* row = curved.gram.data() + static_cast<std::size_t>(j) * curved.room;
      std::copy(row, row + j + 1, matrix + static_cast<std::size_t>(j) * size);
    }
    for (int j = 0; j < m; ++j) matrix[static_cast<std::size_t>(j) * size + j] += 1;
    return value;
  }

  // step = -matrix^-1 gradient, the matrix scaled to a diagonal of 1; false where rounding has eaten it.
  static SLIM_INLINE bool solve(std::vector<double>& matrix, const std::vector<double>& gradient, std::vector<double>& scale,
                                std::vector<double>& step, int size) {
    for (int j = 0; j < size; ++j) {
      const double diagonal = matrix[static_cast<std::size_t>(j) * size + j];
      if (!(diagonal > 0 && diagonal < std::numeric_limits<double>::infinity())) return false;
      scale[j] = 1 / std::sqrt(diagonal);
    }
    for (int j = 0; j < size; ++j)
      for (int k = 0; k <= j; ++k) matrix[static_cast<std::size_t>(j) * size + k] *= scale[j] * scale[k];
    if (!dispatch<Factorize>(matrix.data(), size)) return false;
    for (int j = 0; j < size; ++j) {
      const double pivot = matrix[static_cast<std::size_t>(j) * size + j];
      if (!(pivot * pivot > worst_pivot)) return false;
      step[j] = -gradient[j] * scale[j];
    }
    solve_factored(matrix, size, step.data());
    for (int j = 0; j < size; ++j) {
      step[j] *= scale[j];
      if (!std::isfinite(step[j])) return false;
    }
    return true;
  }

  // The best t along the step: the root of an increasing derivative, which is to be at most `accuracy`.
  static SLIM_INLINE double line_search(const SmoothMachine& machine, const Read& loss, const SmoothSolution& now, const double* step,
                                        const double* q, double accuracy) {
    double slope = 0, bend = 0, t = 1, low = 0, high = std::numeric_limits<double>::infinity();
    for (int j = 0; j < machine.m; ++j) {
      slope += now.w[j] * step[j];
      bend += step[j] * step[j];
    }
    for (int round = 0; round < 50; ++round) {
      double derivative = slope + t * bend, second = bend;
      for (int i = 0; i < machine.n; ++i) {
        const double along = Read::side(machine.y[i]) * q[i], xi = Read::residual(machine.y[i], now.f[i]) - t * along;
        derivative -= machine.c[i] * along * loss.slope(xi);
        if (loss.curved(xi)) second += machine.c[i] / loss.width * along * along;
      }
      if (std::abs(derivative) <= accuracy) break;
      (derivative < 0 ? low : high) = t;
      const double newton = second > 1e-300 * std::abs(derivative) ? t - derivative / second : t;
      t = newton > low && newton < high ? newton : std::isfinite(high) ? 0.5 * (low + high) : 2 * t;
    }
    return t;
  }
};

}  // namespace slimsvm
