// The forms of kernels. A kernel is a function value(s) of one number s, and its form says which number that is:
//
//   FunctionOfDot       s = x.z
//   Radial              s = |x - z|^2
//   FunctionOfTaxicab   s = |x - z|_1
//
// A form knows everything else: how s is summed over dense and sparse rows, which sizes of rows that needs, and what rounding
// does to it. A kernel never sees sizes or products.
//
// Products are the cheap way to |x - z|^2 = |x|^2 + |z|^2 - 2 x.z, but lose the digits that cancel. The strain of a row says how
// many: the share of a kernel value that one unit of rounding of the row's size is worth. Blocks of rows with more strain than
// `products_up_to` are summed over the differences x - z themselves.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/metrics.hpp"

namespace slimsvm {

// Strain up to which products serve. Two of the values met are then right to 1e-13 in double and 1e-4 in float.
// Differences cost twice as much where rows are dense; where they are sparse, many times: there float, which proves
// nothing, may be rougher.
constexpr double products_up_to = 64;
template <class Real>
constexpr double sparse_products_up_to = sizeof(Real) == 4 ? 16384 : 1024;
constexpr double differences_only = -1;  // no strain is small enough for products

// A bound on the error of a kernel value: a part of it may be relative to the value.
struct Rounding {
  double absolute, relative = 0;
};

// How s was summed.
struct Summation {
  double largest;       // size of the largest row
  double terms;         // longest chain of additions
  double unit;          // unit roundoff of the type
  bool by_differences;  // throughout
  double products;      // strain up to which products served
};

// The slope of a kernel is its derivative with respect to s, but for a constant factor that `slope_factor()` gives: it is
enum class Slope {
  value,               // the kernel's value k,
  one_minus_squared,   // 1 - k^2,
  function,            // a function slope(s) of the kernel's own,
  none                 // not defined where x = z: vectors are not learned for such a kernel; a pass that asks gets the value k
};

// k(x, z) = value(x.z). A kernel of this form also declares
//   dot_product_degree()  its degree p in x.z: a value is rounded by about eps p |x.z|^(p-1) |x| |z|, which is more than eps times
//                         the value where the terms of x.z cancel
//   rounding(how)         a bound on the error of a value
//   float_loss(largest)   the usual error of a value in float, in roundings, where `largest` is the size of the largest row
struct FunctionOfDot {
  using Metric = Dot;
  using Differences = void;
  template <class T, int N>
  static SLIM_INLINE Vec<T, N> argument(Vec<T, N> dot) {
    return dot;
  }
};

// k(x, z) = value(|x - z|^2). All bounds follow from the one number that such a kernel declares:
//   rate()         with |k'(s)| <= rate k(s), s |k'(s)| <= 0.4 and s^1/2 |k'(s)| <= 0.5 rate^1/2 for all s
//   narrow<Real>   columns up to which value(s) costs more than its sum: differences are free there
template <class Kernel>
struct Radial {
  using Metric = Dot;
  using Differences = SquaredDistance;
  template <class T, int N>
  static SLIM_INLINE Vec<T, N> argument(Vec<T, N> dot, Vec<T, N> size_x, Vec<T, N> size_z) {
    return vmax((size_x + size_z) - T(2) * dot, Vec<T, N>{});
  }
  double dot_product_degree() const { return 0; }
  double strain(double size) const { return self().rate() * size; }
  // Rows are rounded to float: by how many units does that change a value?
  double blur(double largest) const { return std::sqrt(strain(largest)); }
  // Products up to their limit; beyond, the rounding of the rows themselves.
  double float_loss(double largest, double products) const {
    const double strained = strain(largest);
    return std::sqrt(strained) + (products == differences_only ? 0.0 : std::min(strained, products));
  }
  // Of products: (terms + 6) unit rate (|x| + |z|)^2 in s; where one row is much larger than the other, less, as the value is small.
  Rounding rounding(const Summation& how) const {
    const double strained = strain(how.largest);
    if (!how.by_differences && strained <= how.products) return {4 * how.unit, how.unit * (how.terms + 6) * 4 * strained};
    const double widest = 2 * std::sqrt(how.products) + 1;
    return {how.unit * (4 + 2 * std::sqrt(strained) + (how.terms + 6) * (how.by_differences ? 0.4 : widest * widest))};
  }

 private:
  const Kernel& self() const { return static_cast<const Kernel&>(*this); }
};

// k(x, z) = value(|x - z|_1), with a rate() as above.
template <class Kernel>
struct FunctionOfTaxicab {
  using Metric = TaxicabDistance;
  using Differences = TaxicabDistance;
  template <class T, int N>
  static SLIM_INLINE Vec<T, N> argument(Vec<T, N> distance) {
    return distance;
  }
  double dot_product_degree() const { return 0; }
  double strain(double size) const { return self().rate() * size; }
  double blur(double largest) const { return strain(largest); }
  double float_loss(double largest, double) const { return strain(largest); }
  Rounding rounding(const Summation& how) const {
    const double strained = strain(how.largest);
    if (!how.by_differences && strained <= how.products) return {4 * how.unit, how.unit * (how.terms + 6) * 3 * strained};
    return {how.unit * (4 + 2 * strained + (how.terms + 4) * (how.by_differences ? 0.4 : 3 * how.products + 1))};
  }

 private:
  const Kernel& self() const { return static_cast<const Kernel&>(*this); }
};

}  // namespace slimsvm
