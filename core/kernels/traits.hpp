// What the blocks ask of a kernel, and the check that a kernel has it all.
#pragma once

#include <type_traits>
#include <utility>

#include "kernels/forms.hpp"

namespace slimsvm {

// --- what follows from a form ----------------------------------------------------------------------------------------

// Can s be summed over differences?
template <class Kernel>
constexpr bool of_differences = !std::is_void_v<typename Kernel::Differences>;

// Is there a choice between products and differences?
template <class Kernel>
constexpr bool chooses_metric = of_differences<Kernel> && !std::is_same_v<typename Kernel::Metric, typename Kernel::Differences>;

// Does s come from the metric's sum and the sizes of both rows?
template <class Kernel, class = void>
constexpr bool reads_sizes = false;
template <class Kernel>
constexpr bool reads_sizes<Kernel, std::void_t<decltype(Kernel::template argument<double, 2>(Vec<double, 2>{}, Vec<double, 2>{}, Vec<double, 2>{}))>> = true;

// value(s), where s comes from the metric's sum and the sizes, or is summed over differences.
template <class T, int N, class Kernel>
SLIM_INLINE Vec<T, N> value_of_sums(const Kernel& kernel, Vec<T, N> sum, [[maybe_unused]] Vec<T, N> size_x, [[maybe_unused]] Vec<T, N> size_z) {
  if constexpr (reads_sizes<Kernel>)
    return kernel.template value<T, N>(Kernel::template argument<T, N>(sum, size_x, size_z));
  else
    return kernel.template value<T, N>(Kernel::template argument<T, N>(sum));
}

// Strain up to which products serve for rows of this width.
template <class Real, class Kernel>
double product_limit(Index width, bool sparse) {
  if constexpr (chooses_metric<Kernel>)
    if (!sparse && width <= Kernel::template narrow<Real>) return differences_only;
  (void)width;
  return sparse ? sparse_products_up_to<Real> : products_up_to;
}

// The slope of a kernel as a kernel of the same form, for the blocks to compute.
template <class Kernel>
struct SlopeOf : Kernel {
  explicit SlopeOf(const Kernel& kernel) : Kernel(kernel) {}
  template <class T, int N>
  SLIM_INLINE Vec<T, N> value(Vec<T, N> s) const {
    return Kernel::template slope<T, N>(s);
  }
};

// --- what a kernel must have -----------------------------------------------------------------------------------------

namespace kernel_members {

template <template <class> class Member, class Kernel, class = void>
constexpr bool has = false;
template <template <class> class Member, class Kernel>
constexpr bool has<Member, Kernel, std::void_t<Member<Kernel>>> = true;

template <class K>
using metric = typename K::Metric;
template <class K>
using differences = typename K::Differences;
template <class K>
using value = std::enable_if_t<std::is_same_v<decltype(std::declval<const K&>().template value<double, 2>(Vec<double, 2>{})), Vec<double, 2>>>;
template <class K>
using slope_kind = std::enable_if_t<std::is_same_v<decltype(K::slope_kind), const Slope>>;
template <class K>
using slope_factor = std::enable_if_t<std::is_convertible_v<decltype(std::declval<const K&>().slope_factor()), double>>;
template <class K>
using slope = std::enable_if_t<std::is_same_v<decltype(std::declval<const K&>().template slope<double, 2>(Vec<double, 2>{})), Vec<double, 2>>>;
template <class K>
using rate = decltype(std::declval<const K&>().rate());
template <class K>
using narrow = decltype(K::template narrow<float> + K::template narrow<double>);
template <class K>
using degree = decltype(std::declval<const K&>().dot_product_degree());
template <class K>
using float_loss = decltype(std::declval<const K&>().float_loss(0.0, 0.0));
template <class K>
using rounding = std::enable_if_t<std::is_same_v<decltype(std::declval<const K&>().rounding(std::declval<const Summation&>())), Rounding>>;

}  // namespace kernel_members

// Does the kernel have all that the core asks of it? If not, this does not compile, and the message names what is missing.
template <class K>
constexpr bool check_kernel() {
  using namespace kernel_members;
  static_assert(has<metric, K> && has<differences, K>, "a kernel inherits its form: FunctionOfDot, Radial<Kernel> or FunctionOfTaxicab<Kernel>");
  static_assert(has<value, K>, "a kernel needs `template <class T, int N> Vec<T, N> value(Vec<T, N> s) const`");
  static_assert(has<slope_kind, K>, "a kernel needs `static constexpr Slope slope_kind`: how does its slope follow from its value?");
  static_assert(has<slope_factor, K>, "a kernel needs `double slope_factor() const`: its derivative is this times its slope");
  if constexpr (has<slope_kind, K>)
    static_assert(K::slope_kind != Slope::function || has<slope, K>,
                  "a kernel with Slope::function needs `template <class T, int N> Vec<T, N> slope(Vec<T, N> s) const`");
  if constexpr (has<differences, K>) {
    static_assert(!of_differences<K> || has<rate, K>, "a kernel of distances needs `double rate() const`: a bound on |k'(s)| / k(s)");
    static_assert(!chooses_metric<K> || has<narrow, K>,
                  "a radial kernel needs `template <class Real> static constexpr Index narrow`: the width up to which differences are free");
  }
  static_assert(has<degree, K>, "a kernel of x.z needs `double dot_product_degree() const`");
  if constexpr (!has<differences, K> || has<rate, K> || !of_differences<K>) {
    static_assert(has<float_loss, K>, "a kernel of x.z needs `double float_loss(double largest, double products) const`");
    static_assert(has<rounding, K>, "a kernel of x.z needs `Rounding rounding(const Summation& how) const`");
  }
  return true;
}

}  // namespace slimsvm
