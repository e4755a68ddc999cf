// (gamma x.z + coef0)^degree.
#include "kernels/kernel_of.hpp"

namespace slimsvm {

namespace {

struct Polynomial : FunctionOfDot {
  double gamma, coef0;
  int degree;
  Polynomial(double g, double c, int d) : gamma(g), coef0(c), degree(d) {}

  static constexpr Slope slope_kind = Slope::function;
  template <class T, int N>
  SLIM_INLINE Vec<T, N> value(Vec<T, N> dot) const {
    return power<T, N>(dot, degree);
  }
  template <class T, int N>
  SLIM_INLINE Vec<T, N> slope(Vec<T, N> dot) const {
    return power<T, N>(dot, std::max(0, degree - 1));
  }
  double slope_factor() const { return gamma * degree; }
  double dot_product_degree() const { return degree; }
  double float_loss(double largest, double) const { return largest; }  // relative: values are not bounded
  Rounding rounding(const Summation& how) const {
    return {1.01 * degree * (how.terms + 6) * how.unit * std::pow(gamma * how.largest + std::fabs(coef0), degree)};
  }

 private:
  template <class T, int N>
  SLIM_INLINE Vec<T, N> power(Vec<T, N> dot, int exponent) const {
    using V = Vec<T, N>;
    V base = dot * T(gamma) + T(coef0), product = splat<V>(T(1));
    for (int e = exponent; e > 0; e >>= 1) {
      if (e & 1) product = product * base;
      base = base * base;
    }
    return product;
  }
};

}  // namespace

AnyKernel polynomial(double gamma, double coef0, int degree) { return AnyKernel::of(Polynomial(gamma, coef0, degree)); }

}  // namespace slimsvm
