// Dots and sums of vectors.
#pragma once

#include <vector>

#include "cpu/buffer.hpp"
#include "cpu/simd.hpp"

namespace slimsvm {

namespace linear {

// The sum of the lanes, in pairs.
template <class Real, int N, int Step = N / 2>
SLIM_INLINE Real across(Vec<Real, N> v) {
  const Vec<Real, N> sum = v + swapped<Real, N, Step>(v);
  if constexpr (Step == 1)
    return sum[0];
  else
    return across<Real, N, Step / 2>(sum);
}

}  // namespace linear

struct LongDot {
  template <class Isa>
  static SLIM_INLINE double run(const double* x, const double* y, Index count) {
    constexpr int L = lanes<double, Isa>, U = 4;
    using V = Vec<double, L>;
    V sum[U];
    for (V& part : sum) part = V{};
    Index k = 0;
    for (; k + U * L <= count; k += U * L)
#pragma GCC unroll 4
      for (int u = 0; u < U; ++u) sum[u] += load<V>(x + k + u * L) * load<V>(y + k + u * L);
    double total = linear::across<double, L>((sum[0] + sum[1]) + (sum[2] + sum[3]));
    for (; k < count; ++k) total += x[k] * y[k];
    return total;
  }
};
struct AddTimes {  // y += factor x
  template <class Isa>
  static SLIM_INLINE void run(double factor, const double* x, Index count, double* y) {
    for (Index k = 0; k < count; ++k) y[k] += factor * x[k];
  }
};

inline double dot(const std::vector<double>& x, const std::vector<double>& y) {
  return dispatch<LongDot>(x.data(), y.data(), static_cast<Index>(x.size()));
}
inline void add(double factor, const std::vector<double>& x, std::vector<double>& y) {
  dispatch<AddTimes>(factor, x.data(), static_cast<Index>(x.size()), y.data());
}

}  // namespace slimsvm
