// Kernel values of one row, or of a few: nothing is packed, vectors are read once where they lie, and all is summed in double.
// Rows and vectors of float are numbers of double, too: which of the two they are makes no difference here.
#pragma once

#include "kernels/traits.hpp"

namespace slimsvm {

// The sum of the lanes, in halves.
template <int N>
SLIM_INLINE double across(Vec<double, N> v) {
  double part[N];
  store(part, v);
#pragma GCC unroll 4
  for (int half = N / 2; half > 0; half /= 2)
#pragma GCC unroll 4
    for (int l = 0; l < half; ++l) part[l] += part[l + half];
  return part[0];
}

template <int N, class T>
SLIM_INLINE Vec<double, N> load_double(const T* p) {
  return __builtin_convertvector(load<Vec<T, N>>(p), Vec<double, N>);
}

// The metric's sum of two rows, in double.
template <class T>
struct RowSum {
  template <class Metric, int N>
  static SLIM_INLINE double rest(const double* x, const T* z, Index width) {
    double total = 0;
    if (width >= N) {
      total = across<N>(Metric::step(Vec<double, N>{}, load<Vec<double, N>>(x), load_double<N>(z)));
      x += N, z += N, width -= N;
    }
    if constexpr (N > 2) return total + rest<Metric, N / 2>(x, z, width);
    // A vector of one lane would go through memory.
    return width ? total + Metric::step(Vec<double, 2>{}, Vec<double, 2>{x[0]}, Vec<double, 2>{static_cast<double>(z[0])})[0] : total;
  }
  template <class Metric, int N>
  static SLIM_INLINE double sum(const double* x, const T* z, Index width) {
    using V = Vec<double, N>;
    V even{}, odd{};
    Index k = 0;
    for (; k + 2 * N <= width; k += 2 * N) {
      even = Metric::step(even, load<V>(x + k), load_double<N>(z + k));
      odd = Metric::step(odd, load<V>(x + k + N), load_double<N>(z + k + N));
    }
    return across<N>(even + odd) + rest<Metric, N>(x + k, z + k, width - k);
  }
};

// values[j] = k(x, z_j), where a vector starts every `apart` numbers. `values` has room for a vector register more.
template <class Kernel, class T>
struct RowValues {
  template <class Isa>
  static SLIM_INLINE void run(const Kernel* kernel, const double* x, const T* z, Index apart, Index count, Index width, double* values) {
    constexpr int N = lanes<double, Isa>;
    using V = Vec<double, N>;
    using Metric = std::conditional_t<of_differences<Kernel>, typename Kernel::Differences, typename Kernel::Metric>;
    for (Index j = 0; j < count; ++j) values[j] = RowSum<T>::template sum<Metric, N>(x, z + j * apart, width);
    store(values + count, V{});
    for (Index j = 0; j < count; j += N) {
      const V s = load<V>(values + j);
      store(values + j, kernel->template value<double, N>(s));
    }
  }
};

}  // namespace slimsvm
