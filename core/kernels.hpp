// One struct per kernel. A kernel value is `finish(s, nx, nz)`, where s = sum_k step(x_k, z_k) and n is the
// size of a row, both defined by the kernel's metric.
#pragma once

#include <variant>

#include "rows.hpp"
#include "simd.hpp"

namespace slimsvm {

// s = x.z, size = x.x
struct Dot {
  template <class V>
  static SLIM_INLINE V step(V sum, V x, V z) {
    return sum + x * z;
  }
  template <class V>
  static SLIM_INLINE V sparse_step(V sum, V x, V z) {  // only where z_k != 0
    return sum + x * z;
  }
  template <class V>
  static SLIM_INLINE V sparse_sum(V sum, V) {
    return sum;
  }
  static constexpr Size size = Size::squares;
};

// s = |x - z|_1, size = |x|_1
struct Taxicab {
  template <class V>
  static SLIM_INLINE V step(V sum, V x, V z) {
    return sum + vabs(x - z);
  }
  template <class V>
  static SLIM_INLINE V sparse_step(V sum, V x, V z) {  // |x - z| = |x| where z_k = 0: summed in size(x)
    return sum + (vabs(x - z) - vabs(x));
  }
  template <class V>
  static SLIM_INLINE V sparse_sum(V sum, V size_x) {
    return vmax(sum + size_x, V{});
  }
  static constexpr Size size = Size::absolute;
};

// s = |x - z|^2 summed directly, size = x.x. Twice the work of a product, but no cancellation.
struct Distance {
  template <class V>
  static SLIM_INLINE V step(V sum, V x, V z) {
    return sum + (x - z) * (x - z);
  }
  template <class V>
  static SLIM_INLINE V sparse_step(V sum, V x, V z) {  // (x - z)^2 = x^2 where z_k = 0: summed in size(x)
    return sum + z * (z - (x + x));
  }
  template <class V>
  static SLIM_INLINE V sparse_sum(V sum, V size_x) {
    return vmax(sum + size_x, V{});
  }
  static constexpr Size size = Size::squares;
};

struct Linear {
  using Metric = Dot;
  template <class T, int N>
  SLIM_INLINE Vec<T, N> finish(Vec<T, N> s, Vec<T, N>, Vec<T, N>) const {
    return s;
  }
};

struct Gaussian {  // exp(-gamma |x - z|^2)
  using Metric = Dot;
  double gamma;
  template <class T, int N>
  SLIM_INLINE Vec<T, N> finish(Vec<T, N> s, Vec<T, N> nx, Vec<T, N> nz) const {
    using V = Vec<T, N>;
    const V distance = vmax((nx + nz) - T(2) * s, V{});
    return vexp_falling<T, N>(distance * T(-gamma));
  }
};

struct NarrowGaussian {  // the same in float for few columns, where exp outweighs the sums and accuracy is free
  using Metric = Distance;
  static constexpr Index most_columns = 32;
  double gamma;
  template <class T, int N>
  SLIM_INLINE Vec<T, N> finish(Vec<T, N> s, Vec<T, N>, Vec<T, N>) const {
    return vexp_falling<T, N>(s * T(-gamma));
  }
};

struct Laplacian {  // exp(-gamma |x - z|_1)
  using Metric = Taxicab;
  double gamma;
  template <class T, int N>
  SLIM_INLINE Vec<T, N> finish(Vec<T, N> s, Vec<T, N>, Vec<T, N>) const {
    return vexp_falling<T, N>(s * T(-gamma));
  }
};

struct Polynomial {  // (gamma x.z + coef0)^degree
  using Metric = Dot;
  double gamma, coef0;
  int degree;
  template <class T, int N>
  SLIM_INLINE Vec<T, N> finish(Vec<T, N> s, Vec<T, N>, Vec<T, N>) const {
    using V = Vec<T, N>;
    V base = s * T(gamma) + T(coef0), power = splat<V>(T(1));
    for (int e = degree; e > 0; e >>= 1) {
      if (e & 1) power = power * base;
      base = base * base;
    }
    return power;
  }
};

struct Sigmoid {  // tanh(gamma x.z + coef0)
  using Metric = Dot;
  double gamma, coef0;
  template <class T, int N>
  SLIM_INLINE Vec<T, N> finish(Vec<T, N> s, Vec<T, N>, Vec<T, N>) const {
    using V = Vec<T, N>;
    const V twice = (s * T(gamma) + T(coef0)) * T(2);
    return splat<V>(T(1)) - T(2) / (vexp<T, N>(twice) + T(1));
  }
};

using AnyKernel = std::variant<Linear, Gaussian, NarrowGaussian, Laplacian, Polynomial, Sigmoid>;

}  // namespace slimsvm
