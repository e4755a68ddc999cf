// Kernel values between packed dense rows: a register tile of sums, like that of a matrix product, and the kernel behind it.
#pragma once

#include "cpu/register_tile.hpp"
#include "kernels/blocks.hpp"
#include "kernels/traits.hpp"

namespace slimsvm {

template <class Real, class Kernel>
struct DenseTile {
  // `left` groups against one packed panel of right rows. `products`: the strain up to which they serve.
  template <class Isa>
  static SLIM_INLINE void run(const Kernel* kernel, const PackedLeft<Real>* left, int left_rows, Index width, const Real* panel,
                              const Real* right_sizes, Real* const* out, int offset, double products) {
    constexpr int L = lanes<Real, Isa>, M = Isa::tile_rows, N = Isa::tile_vectors;
    using V = Vec<Real, L>;
    Real largest = 0;
    if constexpr (chooses_metric<Kernel>) largest = *std::max_element(right_sizes, right_sizes + N * L);
    for (int first = 0, g = 0; first < left_rows; first += M, ++g) {
      const Real* a = left->panels.get() + left->panel_start[g];
      const int rows = std::min(M, left_rows - first);
      V sum[M][N];
      if constexpr (chooses_metric<Kernel>) {
        if (!(kernel->strain(std::min(left->largest[g], largest)) <= products)) {
          tile_sums_in_stretches<typename Kernel::Differences>(a, M, panel, N * L, width, sum);
          each_sum(sum, rows, [&](int i, int v, V s) SLIM_INLINE_LAMBDA {
            store(out[first + i] + offset + v * L, kernel->template value<Real, L>(s));
          });
          continue;
        }
      }
      tile_sums_in_stretches<typename Kernel::Metric>(a, M, panel, N * L, width, sum);
      each_sum(sum, rows, [&](int i, int v, V s) SLIM_INLINE_LAMBDA {
        const V left_size = splat<V>(left->sizes[first + i]), right_size = load<V>(right_sizes + v * L);
        store(out[first + i] + offset + v * L, value_of_sums<Real, L>(*kernel, s, left_size, right_size));
      });
    }
  }

 private:
  // use(i, v, sum[i][v]) for i < rows.
  template <class V, int M, int N, class Use>
  static SLIM_INLINE void each_sum(const V (&sum)[M][N], int rows, const Use& use) {
#if defined(__clang__)
    // Unrolled, Clang keeps the many constants of exp in double on the stack: it writes them there at every call.
    if constexpr (sizeof(Real) == sizeof(double)) {
      V kept[M][N];
#pragma GCC unroll 16
      for (int i = 0; i < M; ++i)
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v) kept[i][v] = sum[i][v];
#pragma clang loop unroll(disable)
      for (int i = 0; i < rows; ++i)
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v) use(i, v, kept[i][v]);
      return;
    }
#endif
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) {
      if (i >= rows) continue;
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) use(i, v, sum[i][v]);
    }
  }
};

// Sizes of the rows of one packed panel, summed as the tile sums products.
template <class Real, class Metric>
struct PanelSizes {
  template <int Lanes, int Count>
  static SLIM_INLINE void add(const Real* panel, Index width, Real* sizes) {
    using V = Vec<Real, Lanes>;
    V sum[Count];
    for (Index first = 0; first == 0 || first < width; first += stretch<Real>) {
      V part[Count];
#pragma GCC unroll 16
      for (int i = 0; i < Count; ++i) part[i] = V{};
      for (Index k = first; k < std::min(first + stretch<Real>, width); ++k, panel += Lanes * Count)
#pragma GCC unroll 16
        for (int i = 0; i < Count; ++i) part[i] = Metric::size_step(part[i], load<V>(panel + i * Lanes));
#pragma GCC unroll 16
      for (int i = 0; i < Count; ++i) sum[i] = first ? sum[i] + part[i] : part[i];
    }
#pragma GCC unroll 16
    for (int i = 0; i < Count; ++i) store(sizes + i * Lanes, sum[i]);
  }
  template <class Isa>
  static SLIM_INLINE void run(const Real* panel, Index width, int stride, Real* sizes) {
    if (stride == Isa::tile_rows)
      add<2, Isa::tile_rows / 2>(panel, width, sizes);
    else
      add<lanes<Real, Isa>, Isa::tile_vectors>(panel, width, sizes);
  }
};

}  // namespace slimsvm
