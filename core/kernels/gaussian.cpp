// exp(-gamma |x - z|^2): "rbf".
#include "kernels/kernel_of.hpp"

namespace slimsvm {

namespace {

struct Gaussian : Radial<Gaussian> {
  double gamma;
  explicit Gaussian(double g) : gamma(g) {}

  static constexpr Slope slope_kind = Slope::value;
  template <class T, int N>
  SLIM_INLINE Vec<T, N> value(Vec<T, N> s) const {
    return vexp_falling<T, N>(s * T(-gamma));
  }
  double slope_factor() const { return -gamma; }
  double rate() const { return gamma; }
  template <class Real>
  static constexpr Index narrow = sizeof(Real) == 4 ? 32 : 8;
};

}  // namespace

AnyKernel gaussian(double gamma) { return AnyKernel::of(Gaussian(gamma)); }

}  // namespace slimsvm
