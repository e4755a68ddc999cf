#include "learning/smooth_newton.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "learning/panels.hpp"
#include "linalg/cholesky.hpp"

namespace slimsvm {

namespace {

// Rows of a sum [p 1]'[p 1], collected so that many are added at once.
struct CurvatureSum {
  static constexpr int most = 128;
  int size, room, count = 0;
  std::vector<double> rows, gram;

  explicit CurvatureSum(int features) : size(features), room(room_for<double>(features)), rows(static_cast<std::size_t>(most) * room, 0.0) {}
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

template <class Loss>
struct SmoothNewton {
  // Squared pivots of a matrix with diagonal 1 below this leave too few digits of a step.
  static constexpr double worst_pivot = 1e-10;

  template <class Isa>
  static SLIM_INLINE void run(const SmoothProblem* given, double tol, int max_steps, SmoothSolution* solution) {
    const SmoothProblem& problem = *given;
    const Loss loss(problem.loss);
    SmoothSolution& now = *solution;
    const int n = problem.n, m = problem.m, size = m + 1;
    std::vector<double> gradient(size), step(size), matrix(static_cast<std::size_t>(size) * size), scale(size), q(n);
    CurvatureSum curved(size);
    double cost = 0, last_gain = std::numeric_limits<double>::infinity();
    for (int i = 0; i < n; ++i) cost += problem.c[i];
    times<Isa>(problem, now.w.data(), now.f.data());
    while (now.steps < max_steps) {
      const double value = equations<Isa>(problem, loss, now, curved, gradient.data(), matrix.data());
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
      times<Isa>(problem, step.data(), q.data());
      // A step that gains next to nothing is taken whole: it squares what is left to gain.
      const double t = gain > tol * value ? line_search(problem, loss, now, step.data(), q.data(), 2e-3 * gain) : 1.0;
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
  static SLIM_INLINE void times(const SmoothProblem& problem, const double* w, double* f) {
    constexpr int L = lanes<double, Isa>;
    using V = Vec<double, L>;
    const int m = problem.m;
    for (int i = 0; i < problem.n; ++i) {
      const double* p = problem.features + static_cast<std::size_t>(i) * m;
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
  static SLIM_INLINE double equations(const SmoothProblem& problem, const Loss& loss, const SmoothSolution& now, CurvatureSum& curved,
                                      double* gradient, double* matrix) {
    const int m = problem.m, size = m + 1;
    const double root = 1 / std::sqrt(loss.width);
    curved.clear();
    double value = 0;
    for (int j = 0; j < m; ++j) {
      gradient[j] = now.w[j];
      value += 0.5 * now.w[j] * now.w[j];
    }
    gradient[m] = 0;
    for (int i = 0; i < problem.n; ++i) {
      const double* p = problem.features + static_cast<std::size_t>(i) * m;
      const double xi = Loss::residual(problem.y[i], now.f[i]);
      value += problem.c[i] * loss.value(xi);
      const double a = problem.c[i] * Loss::side(problem.y[i]) * loss.slope(xi);
      if (a != 0) {
        for (int j = 0; j < m; ++j) gradient[j] -= a * p[j];
        gradient[m] -= a;
      }
      if (loss.curved(xi) && problem.c[i] != 0) curved.add<Isa>(p, std::sqrt(problem.c[i]) * root);
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
    if (!dispatch<CholeskyFactor>(matrix.data(), size)) return false;
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
  static SLIM_INLINE double line_search(const SmoothProblem& problem, const Loss& loss, const SmoothSolution& now, const double* step,
                                        const double* q, double accuracy) {
    double slope = 0, bend = 0, t = 1, low = 0, high = std::numeric_limits<double>::infinity();
    for (int j = 0; j < problem.m; ++j) {
      slope += now.w[j] * step[j];
      bend += step[j] * step[j];
    }
    for (int round = 0; round < 50; ++round) {
      double derivative = slope + t * bend, second = bend;
      for (int i = 0; i < problem.n; ++i) {
        const double along = Loss::side(problem.y[i]) * q[i], xi = Loss::residual(problem.y[i], now.f[i]) - t * along;
        derivative -= problem.c[i] * along * loss.slope(xi);
        if (loss.curved(xi)) second += problem.c[i] / loss.width * along * along;
      }
      if (std::abs(derivative) <= accuracy) break;
      (derivative < 0 ? low : high) = t;
      const double newton = second > 1e-300 * std::abs(derivative) ? t - derivative / second : t;
      t = newton > low && newton < high ? newton : std::isfinite(high) ? 0.5 * (low + high) : 2 * t;
    }
    return t;
  }
};

}  // namespace

void smooth_newton(const SmoothProblem& problem, double tol, int max_steps, SmoothSolution& solution) {
  if (problem.loss.targets)
    dispatch<SmoothNewton<TargetLoss>>(&problem, tol, max_steps, &solution);
  else
    dispatch<SmoothNewton<LabelLoss>>(&problem, tol, max_steps, &solution);
}

}  // namespace slimsvm
