// Cholesky factors of small matrices in one thread, solutions with them, inverses of triangles.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "cpu/simd.hpp"

namespace slimsvm {

// Cholesky factor of the lower triangle of m (n x n, row-major, in place). False if m is not positive definite.
//
// The work is done on the transpose, in the upper triangle: there all sums run along rows.
struct CholeskyFactor {
  template <class Isa>
  static SLIM_INLINE bool run(double* m, int n) {
    constexpr int four = 4;
    const auto row = [&](int i) SLIM_INLINE_LAMBDA { return m + static_cast<std::size_t>(i) * n; };
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < i; ++j) row(j)[i] = row(i)[j];
    for (int first = 0; first < n; first += four) {
      const int last = std::min(first + four, n);
      for (int k = first; k < last; ++k) {
        for (int before = first; before < k; ++before) subtract<Isa>(row(before) + k, row(before)[k], n - k, row(k) + k);
        const double pivot = row(k)[k];
        if (!(pivot > 0)) return false;
        const double root = std::sqrt(pivot), inverse = 1 / root;
        row(k)[k] = root;
        for (int j = k + 1; j < n; ++j) row(k)[j] *= inverse;
      }
      if (last - first < four) break;  // these were the last rows
      for (int i = last; i < n; ++i) {
        const double* from[four] = {row(first) + i, row(first + 1) + i, row(first + 2) + i, row(first + 3) + i};
        subtract_four<Isa>(from, n - i, row(i) + i);
      }
    }
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < i; ++j) row(i)[j] = row(j)[i];
    return true;
  }

 private:
  template <class Isa>
  static SLIM_INLINE void subtract(const double* x, double factor, int count, double* y) {
    for (int k = 0; k < count; ++k) y[k] -= factor * x[k];
  }
  // y -= sum of x[0] x, for four rows x.
  template <class Isa>
  static SLIM_INLINE void subtract_four(const double* const (&x)[4], int count, double* y) {
    constexpr int N = lanes<double, Isa>;
    using D = Vec<double, N>;
    const double a = x[0][0], b = x[1][0], c = x[2][0], d = x[3][0];
    int k = 0;
    for (; k + N <= count; k += N) {
      const D near = splat<D>(a) * load<D>(x[0] + k) + splat<D>(b) * load<D>(x[1] + k);
      const D far = splat<D>(c) * load<D>(x[2] + k) + splat<D>(d) * load<D>(x[3] + k);
      store(y + k, load<D>(y + k) - (near + far));
    }
    for (; k < count; ++k) y[k] -= (a * x[0][k] + b * x[1][k]) + (c * x[2][k] + d * x[3][k]);
  }
};

inline void solve_factored(const std::vector<double>& l, int n, double* x) {
  for (int i = 0; i < n; ++i) {
    const double* r = l.data() + static_cast<std::size_t>(i) * n;
    double sum = x[i];
    for (int k = 0; k < i; ++k) sum -= r[k] * x[k];
    x[i] = sum / r[i];
  }
  for (int i = n - 1; i >= 0; --i) {
    const double* r = l.data() + static_cast<std::size_t>(i) * n;
    x[i] /= r[i];
    for (int k = 0; k < i; ++k) x[k] -= r[k] * x[i];
  }
}

// The inverse of a lower triangle (n x n, row-major), in place.
struct InvertLower {
  template <class Isa>
  static SLIM_INLINE void run(double* l, int n) {
    std::vector<double> sum(static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i) {
      double* row = l + static_cast<std::size_t>(i) * n;
      std::fill_n(sum.begin(), i, 0.0);
      for (int k = 0; k < i; ++k) {
        const double* other = l + static_cast<std::size_t>(k) * n;
        const double factor = row[k];
        for (int j = 0; j <= k; ++j) sum[j] += factor * other[j];
      }
      const double inverse = 1 / row[i];
      for (int j = 0; j < i; ++j) row[j] = -inverse * sum[j];
      row[i] = inverse;
    }
  }
};

}  // namespace slimsvm
