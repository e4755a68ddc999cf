// tanh(gamma x.z + coef0).
#include "kernels/kernel_of.hpp"

namespace slimsvm {

namespace {

struct Sigmoid : FunctionOfDot {
  double gamma, coef0;
  Sigmoid(double g, double c) : gamma(g), coef0(c) {}

  static constexpr Slope slope_kind = Slope::one_minus_squared;
  template <class T, int N>
  SLIM_INLINE Vec<T, N> value(Vec<T, N> dot) const {
    using V = Vec<T, N>;
    const V twice = (dot * T(gamma) + T(coef0)) * T(2);
    return splat<V>(T(1)) - T(2) / (vexp<T, N>(twice) + T(1));
  }
  double slope_factor() const { return gamma; }
  double dot_product_degree() const { return 1; }
  double float_loss(double largest, double) const { return gamma * largest; }
  Rounding rounding(const Summation& how) const {
    return {how.unit * (8 + (how.terms + 6) * (gamma * how.largest + std::fabs(coef0)))};
  }
};

}  // namespace

AnyKernel sigmoid(double gamma, double coef0) { return AnyKernel::of(Sigmoid(gamma, coef0)); }

}  // namespace slimsvm
