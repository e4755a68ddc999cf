// exp(-gamma |x - z|_1).
#include "kernels/kernel_of.hpp"

namespace slimsvm {

namespace {

struct Laplacian : FunctionOfTaxicab<Laplacian> {
  double gamma;
  explicit Laplacian(double g) : gamma(g) {}

  static constexpr Slope slope_kind = Slope::none;  // the distance has a kink where two numbers are equal
  template <class T, int N>
  SLIM_INLINE Vec<T, N> value(Vec<T, N> s) const {
    return vexp_falling<T, N>(s * T(-gamma));
  }
  double slope_factor() const { return 0; }
  double rate() const { return gamma; }
};

}  // namespace

AnyKernel laplacian(double gamma) { return AnyKernel::of(Laplacian(gamma)); }

}  // namespace slimsvm
