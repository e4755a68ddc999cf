// Kernel values of sparse rows: each nonzero of a right row against a panel of left rows, made dense over the columns they use.
#pragma once

#include "cpu/transpose.hpp"
#include "kernels/blocks.hpp"
#include "kernels/traits.hpp"

namespace slimsvm {

// The size of one row given by its nonzeros, summed as the sparse tile sums products.
template <class Real, class Metric>
struct SparseSize {
  template <class Isa>
  static SLIM_INLINE Real run(const Real* values, std::size_t count) {
    using V = Vec<Real, lanes<Real, Isa>>;  // a vector of one lane would go through memory
    V even{}, odd{};
    std::size_t p = 0;
    for (; p + 1 < count; p += 2) {
      even = Metric::size_step(even, splat<V>(values[p]));
      odd = Metric::size_step(odd, splat<V>(values[p + 1]));
    }
    if (p < count) even = Metric::size_step(even, splat<V>(values[p]));
    return (even + odd)[0];
  }
};

// Left rows of a sparse panel: two vectors of the widest instruction set.
template <class Real>
constexpr int sparse_group = 128 / static_cast<int>(sizeof(Real));

template <class Real, class Kernel>
struct SparseTile {
  // One panel of left rows against a few right rows given by their nonzeros; result[j][i].
  template <class Isa>
  static SLIM_INLINE void run(const Kernel* kernel, const Real* panel, const std::int32_t* map, const Real* left_sizes,
                              const PackedStrip<Real>* right, int first, int count, Real* result) {
    constexpr int L = lanes<Real, Isa>, G = sparse_group<Real>;
    constexpr int N = std::min(G / L, 4);  // vectors kept in registers at once
    using V = Vec<Real, L>;
    using Metric = typename Kernel::Metric;
    for (int part = 0; part < G; part += N * L)
      for (int j = 0; j < count; ++j) {
        const std::size_t begin = right->starts[first + j], n = right->starts[first + j + 1] - begin;
        const std::int32_t* columns = right->columns.data() + begin;
        const Real* values = right->values.data() + begin;
        const auto at = [&](std::size_t p) {
          const std::size_t column = map ? map[columns[p]] : columns[p];
          return panel + column * G + part;
        };
        V even[N], odd[N];  // two chains hide the latency of the multiply-add
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v) even[v] = odd[v] = V{};
        std::size_t p = 0;
        for (; p + 1 < n; p += 2) {
          const Real *x0 = at(p), *x1 = at(p + 1);
          const V z0 = splat<V>(values[p]), z1 = splat<V>(values[p + 1]);
#pragma GCC unroll 4
          for (int v = 0; v < N; ++v) {
            even[v] = Metric::sparse_step(even[v], load<V>(x0 + v * L), z0);
            odd[v] = Metric::sparse_step(odd[v], load<V>(x1 + v * L), z1);
          }
        }
        if (p < n) {
          const Real* x0 = at(p);
          const V z0 = splat<V>(values[p]);
#pragma GCC unroll 4
          for (int v = 0; v < N; ++v) even[v] = Metric::sparse_step(even[v], load<V>(x0 + v * L), z0);
        }
        const V size = splat<V>(right->sizes[first + j]);
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v) {
          const V left_size = load<V>(left_sizes + part + v * L);
          const V s = Metric::sparse_sum(even[v] + odd[v], left_size);
          store(result + j * G + part + v * L, value_of_sums<Real, L>(*kernel, s, left_size, size));
        }
      }
  }
};

// One panel of left rows against one right row by differences: `z` is that row over all rows of the panel, `outside` the
// sum over the columns that no row of the panel uses.
template <class Real, class Kernel>
struct SparseDifferences {
  template <class Isa>
  static SLIM_INLINE void run(const Kernel* kernel, const Real* panel, Index used, const Real* z, Real outside, Real* result) {
    constexpr int L = lanes<Real, Isa>, G = sparse_group<Real>;
    constexpr int N = std::min(G / L, 4);
    using V = Vec<Real, L>;
    for (int part = 0; part < G; part += N * L) {
      V sum[N];
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) sum[v] = splat<V>(outside);
      const Real* x = panel + part;
      for (Index u = 0; u < used; ++u, x += G) {
        const V right = splat<V>(z[u]);
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v) sum[v] = Kernel::Differences::step(sum[v], load<V>(x + v * L), right);
      }
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) store(result + part + v * L, kernel->template value<Real, L>(sum[v]));
    }
  }
};

// block[j][i] of a sparse tile (16 right rows) to out[i][offset + j].
template <class Real>
struct ScatterRows {
  template <class Isa>
  static SLIM_INLINE void run(const Real* block, Real* const* out, int rows, int offset) {
    constexpr int N = lanes<Real, Isa>, G = sparse_group<Real>;
    using V = Vec<Real, N>;
    for (int i = 0; i < rows; i += N)
      for (int j = 0; j < 16; j += N) {
        V square[N];
#pragma GCC unroll 16
        for (int r = 0; r < N; ++r) square[r] = load<V>(block + (j + r) * G + i);
        transpose<Real, N>(square);
#pragma GCC unroll 16
        for (int r = 0; r < N; ++r)
          if (i + r < rows) store(out[i + r] + offset + j, square[r]);
      }
  }
};

}  // namespace slimsvm
