// Small squares of numbers turned over in registers.
#pragma once

#include "cpu/simd.hpp"

namespace slimsvm {

// N x N values transposed in registers, in log2(N) rounds of exchanges between rows that differ in one bit.
template <class T, int N, int Step = 1>
SLIM_INLINE void transpose(Vec<T, N> (&rows)[N]) {
  using V = Vec<T, N>;
#pragma GCC unroll 16
  for (int r = 0; r < N; ++r) {
    if (r & Step) continue;
    const V a = rows[r], b = rows[r | Step];
    rows[r] = exchange<T, N, Step, false>(a, b);
    rows[r | Step] = exchange<T, N, Step, true>(a, b);
  }
  if constexpr (2 * Step < N) transpose<T, N, 2 * Step>(rows);
}

// panel[k * stride + i] = rows[i][k] for i < count, a multiple of 16, and k < width.
template <class Real>
struct PackSquares {
  template <class Isa>
  static SLIM_INLINE void run(const Real* const* rows, int count, std::int64_t width, int stride, Real* panel) {
    constexpr int N = lanes<Real, Isa>;
    using V = Vec<Real, N>;
    std::int64_t k = 0;
    for (; k + N <= width; k += N)
      for (int i = 0; i < count; i += N) {
        V square[N];
#pragma GCC unroll 16
        for (int r = 0; r < N; ++r) square[r] = load<V>(rows[i + r] + k);
        transpose<Real, N>(square);
#pragma GCC unroll 16
        for (int r = 0; r < N; ++r) store(panel + (k + r) * stride + i, square[r]);
      }
    for (; k < width; ++k)
      for (int i = 0; i < count; ++i) panel[k * stride + i] = rows[i][k];
  }
};

}  // namespace slimsvm
