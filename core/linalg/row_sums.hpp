// Sums of rows that lie anywhere, of float or double, and dots with them: in double.
#pragma once

#include "cpu/buffer.hpp"
#include "cpu/simd.hpp"

namespace slimsvm {

// y[j] -= sum_i x[i] rows[i][j], in double.
template <class Real>
struct SubtractRows {
  template <class Isa>
  static SLIM_INLINE void run(const Real* const* rows, const double* x, int count, Index length, double* y) {
    constexpr int L = lanes<double, Isa>;
    using D = Vec<double, L>;
    using R = Vec<Real, L>;
    const auto value = [](const Real* p) SLIM_INLINE_LAMBDA { return __builtin_convertvector(load<R>(p), D); };
    int i = 0;
    for (; i + 4 <= count; i += 4) {
      const Real *r0 = rows[i], *r1 = rows[i + 1], *r2 = rows[i + 2], *r3 = rows[i + 3];
      const D x0 = splat<D>(x[i]), x1 = splat<D>(x[i + 1]), x2 = splat<D>(x[i + 2]), x3 = splat<D>(x[i + 3]);
      Index j = 0;
      for (; j + L <= length; j += L)
        store(y + j, load<D>(y + j) - ((x0 * value(r0 + j) + x1 * value(r1 + j)) + (x2 * value(r2 + j) + x3 * value(r3 + j))));
      for (; j < length; ++j) y[j] -= (x[i] * r0[j] + x[i + 1] * r1[j]) + (x[i + 2] * r2[j] + x[i + 3] * r3[j]);
    }
    for (; i < count; ++i) {
      const Real* r = rows[i];
      const D xi = splat<D>(x[i]);
      Index j = 0;
      for (; j + L <= length; j += L) store(y + j, load<D>(y + j) - xi * value(r + j));
      for (; j < length; ++j) y[j] -= x[i] * r[j];
    }
  }
};

// The same, and z[j] += sum_i w[i] rows[i][j].
template <class Real>
struct SubtractAndWeigh {
  template <class Isa>
  static SLIM_INLINE void run(const Real* const* rows, const double* x, const double* w, int count, Index length, double* y, double* z) {
    constexpr int L = lanes<double, Isa>;
    using D = Vec<double, L>;
    using R = Vec<Real, L>;
    int i = 0;
    for (; i + 2 <= count; i += 2) {
      const Real *r0 = rows[i], *r1 = rows[i + 1];
      const D x0 = splat<D>(x[i]), x1 = splat<D>(x[i + 1]), w0 = splat<D>(w[i]), w1 = splat<D>(w[i + 1]);
      Index j = 0;
      for (; j + L <= length; j += L) {
        const D k0 = __builtin_convertvector(load<R>(r0 + j), D), k1 = __builtin_convertvector(load<R>(r1 + j), D);
        store(y + j, load<D>(y + j) - (x0 * k0 + x1 * k1));
        store(z + j, load<D>(z + j) + (w0 * k0 + w1 * k1));
      }
      for (; j < length; ++j) {
        y[j] -= x[i] * r0[j] + x[i + 1] * r1[j];
        z[j] += w[i] * r0[j] + w[i + 1] * r1[j];
      }
    }
    if (i < count)
      for (Index j = 0; j < length; ++j) y[j] -= x[i] * rows[i][j], z[j] += w[i] * rows[i][j];
  }
};

// y[i] += rows[i] . x, in double.
template <class Real>
struct AddDots {
  template <class Isa>
  static SLIM_INLINE void run(const Real* const* rows, const double* x, int count, Index length, double* y) {
    constexpr int L = lanes<double, Isa>;
    using D = Vec<double, L>;
    using R = Vec<Real, L>;
    for (int i = 0; i < count; ++i) {
      const Real* r = rows[i];
      D part[2] = {D{}, D{}};
      Index j = 0;
      for (; j + 2 * L <= length; j += 2 * L) {
        part[0] += load<D>(x + j) * __builtin_convertvector(load<R>(r + j), D);
        part[1] += load<D>(x + j + L) * __builtin_convertvector(load<R>(r + j + L), D);
      }
      const D both = part[0] + part[1];
      double sum = 0;
#pragma GCC unroll 8
      for (int l = 0; l < L; ++l) sum += both[l];
      for (; j < length; ++j) sum += x[j] * static_cast<double>(r[j]);
      y[i] += sum;
    }
  }
};

}  // namespace slimsvm
