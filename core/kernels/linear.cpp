// x.z.
#include "kernels/kernel_of.hpp"

namespace slimsvm {

namespace {

struct Linear : FunctionOfDot {
  static constexpr Slope slope_kind = Slope::function;
  template <class T, int N>
  SLIM_INLINE Vec<T, N> value(Vec<T, N> dot) const {
    return dot;
  }
  template <class T, int N>
  SLIM_INLINE Vec<T, N> slope(Vec<T, N>) const {
    return splat<Vec<T, N>>(T(1));
  }
  double slope_factor() const { return 1; }
  double dot_product_degree() const { return 1; }
  double float_loss(double largest, double) const { return largest; }
  Rounding rounding(const Summation& how) const { return {(how.terms + 3) * how.unit * how.largest}; }
};

}  // namespace

AnyKernel linear() { return AnyKernel::of(Linear{}); }

}  // namespace slimsvm
