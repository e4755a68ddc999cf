// How two rows are compared, number by number: the sums that kernels are functions of.
#pragma once

#include "cpu/simd.hpp"
#include "rows/rows.hpp"

namespace slimsvm {

// sum = x.z; the size of a row is x.x
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
  static SLIM_INLINE V size_step(V sum, V x) {  // rounded as step(sum, x, x) is: equal rows are at distance 0 exactly
    return sum + x * x;
  }
  static constexpr Size size = Size::squares;
};

// sum = |x - z|_1; the size of a row is |x|_1
struct TaxicabDistance {
  template <class V>
  static SLIM_INLINE V step(V sum, V x, V z) {
    return sum + vabs(x - z);
  }
  template <class V>
  static SLIM_INLINE V sparse_step(V sum, V x, V z) {  // |x - z| = |x| where z_k = 0: the size of x has these terms
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

// sum = |x - z|^2 over the differences. Twice the work of a product, but no cancellation.
struct SquaredDistance {
  template <class V>
  static SLIM_INLINE V step(V sum, V x, V z) {
    const V difference = x - z;
    return sum + difference * difference;
  }
};

}  // namespace slimsvm
