// One struct per kernel. A kernel value is `finish(s, nx, nz)`, where s = sum_k step(x_k, z_k) and n is the
// size of a row, both defined by the kernel's metric.
//
// A kernel of the difference x - z also has `direct(s)`, s summed over the differences themselves (`Direct`). Its
// shorter sums lose the digits of the sizes that cancel: gamma * size / 2^53 of a value's share. `strain(size)` says
// how much there is to lose, and `products_up_to` when it is too much.
//
// `rounding(largest, terms, unit, direct)` bounds the error of a value: `largest` is the size of the largest row,
// `terms` the longest chain of additions, `unit` the unit roundoff of the values' type; direct: all sums are over differences.
// A part of it may be relative to the value.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <variant>

#include "rows/rows.hpp"
#include "cpu/simd.hpp"

namespace slimsvm {

// Strain up to which shorter sums serve. Two of the values met are then right to 1e-13 in double and 1e-4 in float.
// Differences cost twice as much where rows are dense; where they are sparse, many times: there float, which proves
// nothing, may be rougher.
constexpr double products_up_to = 64;
template <class Real>
constexpr double sparse_products_up_to = sizeof(Real) == 4 ? 16384 : 1024;

struct Rounding {
  double absolute, relative = 0;
};

// dot_product_degree(): the degree p of a kernel in x.z; 0 for a function of distances. A value is rounded by about
// eps p |x.z|^(p-1) |x| |z|, which is more than eps times the value where the terms of x.z cancel.

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
  template <class V>
  static SLIM_INLINE V size_step(V sum, V x) {  // as step(sum, x, x) rounds it: equal rows are at distance 0 exactly
    return sum + x * x;
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
  template <class V>
  static SLIM_INLINE V size_step(V sum, V x) {
    return sum + vabs(x);
  }
  static constexpr Size size = Size::absolute;
};

// s = |x - z|^2 summed directly. Twice the work of a product, but no cancellation.
struct Distance {
  template <class V>
  static SLIM_INLINE V step(V sum, V x, V z) {
    const V apart = x - z;
    return sum + apart * apart;
  }
};

struct Linear {
  using Metric = Dot;
  double dot_product_degree() const { return 1; }
  template <class T, int N>
  SLIM_INLINE Vec<T, N> finish(Vec<T, N> s, Vec<T, N>, Vec<T, N>) const {
    return s;
  }
  Rounding rounding(double largest, double terms, double unit, bool) const { return {(terms + 3) * unit * largest}; }
};

struct Gaussian {  // exp(-gamma |x - z|^2)
  using Metric = Dot;
  using Direct = Distance;
  // Columns up to which exp outweighs the sums: differences are free.
  template <class Real>
  static constexpr Index narrow = sizeof(Real) == 4 ? 32 : 8;
  double gamma;
  template <class T, int N>
  SLIM_INLINE Vec<T, N> finish(Vec<T, N> s, Vec<T, N> nx, Vec<T, N> nz) const {
    using V = Vec<T, N>;
    return direct<T, N>(vmax((nx + nz) - T(2) * s, V{}));
  }
  template <class T, int N>
  SLIM_INLINE Vec<T, N> direct(Vec<T, N> s) const {
    return vexp_falling<T, N>(s * T(-gamma));
  }
  double dot_product_degree() const { return 0; }
  double strain(double size) const { return gamma * size; }
  // Of products: (terms + 6) unit gamma (|x| + |z|)^2 in the exponent; where one row is much larger than the other, less
  // the value is small. Of differences: t^2 exp(-t^2) and t exp(-t^2) are below 0.4 and 0.5, and rows are rounded too.
  Rounding rounding(double largest, double terms, double unit, bool direct, double most = products_up_to) const {
    const double strained = strain(largest);
    if (!direct && strained <= most) return {4 * unit, unit * (terms + 6) * 4 * strained};
    const double widest = 2 * std::sqrt(most) + 1;
    return {unit * (4 + 2 * std::sqrt(strained) + (terms + 6) * (direct ? 0.4 : widest * widest))};
  }
};

struct Laplacian {  // exp(-gamma |x - z|_1)
  using Metric = Taxicab;
  using Direct = Taxicab;
  double gamma;
  template <class T, int N>
  SLIM_INLINE Vec<T, N> finish(Vec<T, N> s, Vec<T, N>, Vec<T, N>) const {
    return direct<T, N>(s);
  }
  template <class T, int N>
  SLIM_INLINE Vec<T, N> direct(Vec<T, N> s) const {
    return vexp_falling<T, N>(s * T(-gamma));
  }
  double dot_product_degree() const { return 0; }
  double strain(double size) const { return gamma * size; }
  Rounding rounding(double largest, double terms, double unit, bool direct, double most = products_up_to) const {
    const double strained = strain(largest);
    if (!direct && strained <= most) return {4 * unit, unit * (terms + 6) * 3 * strained};
    return {unit * (4 + 2 * strained + (terms + 4) * (direct ? 0.4 : 3 * most + 1))};
  }
};

struct Polynomial {  // (gamma x.z + coef0)^degree
  using Metric = Dot;
  double gamma, coef0;
  int degree;
  double dot_product_degree() const { return degree; }
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
  Rounding rounding(double largest, double terms, double unit, bool) const {
    return {1.01 * degree * (terms + 6) * unit * std::pow(gamma * largest + std::fabs(coef0), degree)};
  }
};

struct Sigmoid {  // tanh(gamma x.z + coef0)
  using Metric = Dot;
  double gamma, coef0;
  double dot_product_degree() const { return 1; }
  template <class T, int N>
  SLIM_INLINE Vec<T, N> finish(Vec<T, N> s, Vec<T, N>, Vec<T, N>) const {
    using V = Vec<T, N>;
    const V twice = (s * T(gamma) + T(coef0)) * T(2);
    return splat<V>(T(1)) - T(2) / (vexp<T, N>(twice) + T(1));
  }
  Rounding rounding(double largest, double terms, double unit, bool) const {
    return {unit * (8 + (terms + 6) * (gamma * largest + std::fabs(coef0)))};
  }
};

// The metric of differences, void for kernels of x.z.
template <class Kernel, class = void>
struct DirectMetric {
  using type = void;
};
template <class Kernel>
struct DirectMetric<Kernel, std::void_t<typename Kernel::Direct>> {
  using type = typename Kernel::Direct;
};
template <class Kernel>
using DirectOf = typename DirectMetric<Kernel>::type;
template <class Kernel>
constexpr bool of_differences = !std::is_void_v<DirectOf<Kernel>>;

using AnyKernel = std::variant<Linear, Gaussian, Laplacian, Polynomial, Sigmoid>;

}  // namespace slimsvm
