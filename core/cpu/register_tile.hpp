// The innermost loop of all products: a block of sums that stays in registers.
//
// sum[i][v] adds up step(sum, left_i, right_v) over k < depth: M broadcast numbers of the left side against N vectors of the right
// side. Both sides are packed: numbers k of the left start at left + k * left_step, those of the right at right + k * right_step.
#pragma once

#include <algorithm>
#include <limits>

#include "cpu/buffer.hpp"
#include "cpu/simd.hpp"

namespace slimsvm {

struct MultiplyAdd {
  template <class V>
  static SLIM_INLINE V step(V sum, V x, V z) {
    return sum + x * z;
  }
};

template <class Step, class V, int M, int N, class Real>
SLIM_INLINE void tile_sums(const Real* left, std::ptrdiff_t left_step, const Real* right, std::ptrdiff_t right_step, Index depth, V (&sum)[M][N]) {
  constexpr int L = sizeof(V) / sizeof(Real);
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < N; ++v) sum[i][v] = V{};
  for (Index k = 0; k < depth; ++k, left += left_step, right += right_step) {
    V x[N];
#pragma GCC unroll 4
    for (int v = 0; v < N; ++v) x[v] = load<V>(right + v * L);
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) {
      const V one = splat<V>(left[i]);
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) sum[i][v] = Step::step(sum[i][v], one, x[v]);
    }
  }
}

// Sums in float over many numbers are sums of sums over this many: their rounding grows with stretch + depth / stretch.
template <class Real>
constexpr Index stretch = sizeof(Real) == 4 ? 64 : std::numeric_limits<Index>::max() / 2;

template <class Step, class V, int M, int N, class Real>
SLIM_INLINE void tile_sums_in_stretches(const Real* left, std::ptrdiff_t left_step, const Real* right, std::ptrdiff_t right_step, Index depth,
                                        V (&sum)[M][N]) {
  tile_sums<Step>(left, left_step, right, right_step, std::min(depth, stretch<Real>), sum);
  if constexpr (sizeof(Real) == 4)
    for (Index first = stretch<Real>; first < depth; first += stretch<Real>) {
      V part[M][N];
      tile_sums<Step>(left + first * left_step, left_step, right + first * right_step, right_step, std::min(depth - first, stretch<Real>), part);
#pragma GCC unroll 16
      for (int i = 0; i < M; ++i)
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v) sum[i][v] += part[i][v];
    }
}

}  // namespace slimsvm
