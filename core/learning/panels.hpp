// Products over panels: 32 rows of data side by side, [feature][row]. What passes over rows are made of.
//
// A small matrix times a panel (`PanelProduct`) keeps rows in lanes; sums over rows (`SumOverRows`) want each row's
// numbers together, so that rows that count nothing are left out before any work is spent on them (`ToRows`).
#pragma once

#include <vector>

#include "cpu/register_tile.hpp"
#include "cpu/transpose.hpp"

namespace slimsvm {

constexpr int panel_rows = 32;

inline int rounded_up(int n, int unit) { return (n + unit - 1) / unit * unit; }

// A small matrix as the left side of products: groups of rows, [group][column][row in group].
template <class Real>
struct PackedMatrix {
  int rows = 0, group = 1;
  std::vector<int> lengths;  // of each group
  std::vector<std::size_t> starts;
  Buffer<Real> data;

  // a[i * row + k * column] for i < rows, k < width. `trimmed`: zeros at the end of rows are left out, whatever they would meet.
  void pack(const double* a, int count, int width, std::ptrdiff_t row, std::ptrdiff_t column, bool trimmed = false) {
    int tile_rows, tile_columns;
    tile_shape<Real>(tile_rows, tile_columns);
    rows = count;
    group = count == 1 ? 1 : count == 2 ? 2 : count <= 4 ? 4 : tile_rows;
    const int groups = (count + group - 1) / group;
    lengths.assign(groups, 0);
    starts.assign(groups, 0);
    Real* to = data.reserve(static_cast<std::size_t>(groups) * group * width);
    std::size_t used = 0;
    for (int g = 0; g < groups; ++g) {
      starts[g] = used;
      for (int k = 0; k < width; ++k)
        for (int i = 0; i < group; ++i) {
          const int at = g * group + i;
          const Real value = at < count ? static_cast<Real>(a[at * row + k * column]) : Real(0);
          to[used + static_cast<std::size_t>(k) * group + i] = value;
          if (!trimmed || value != Real(0)) lengths[g] = k + 1;
        }
      used += static_cast<std::size_t>(lengths[g]) * group;
    }
  }
};

// out[i][row] = sum_k left[i][k] panel[k][row].
template <class Real>
struct PanelProduct {
  template <int M, int N, class V>
  static SLIM_INLINE void tile(const Real* a, const Real* b, int length, Real* out, int rows) {
    constexpr int L = sizeof(V) / sizeof(Real);
    V sum[M][N];
    tile_sums_in_stretches<MultiplyAdd>(a, M, b, panel_rows, length, sum);
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i)
#pragma GCC unroll 8
      for (int v = 0; v < N; ++v)
        if (i < rows) store(out + i * panel_rows + v * L, sum[i][v]);
  }
  template <class Isa, int M>
  static SLIM_INLINE void all(const PackedMatrix<Real>& left, const Real* panel, Real* out) {
    constexpr int L = lanes<Real, Isa>, N = M <= 4 ? std::min(4, panel_rows / L) : Isa::tile_vectors;
    for (int g = 0, first = 0; first < left.rows; ++g, first += M)
      for (int c = 0; c < panel_rows; c += N * L)
        tile<M, N, Vec<Real, L>>(left.data.get() + left.starts[g], panel + c, left.lengths[g], out + first * panel_rows + c,
                                 std::min(M, left.rows - first));
  }
  template <class Isa>
  static SLIM_INLINE void run(const PackedMatrix<Real>* left, const Real* panel, Real* out) {
    switch (left->group) {
      case 1: return all<Isa, 1>(*left, panel, out);
      case 2: return all<Isa, 2>(*left, panel, out);
      case 4: return all<Isa, 4>(*left, panel, out);
      default: return all<Isa, Isa::tile_rows>(*left, panel, out);
    }
  }
};

// rows[r][k] = panel[k][r] for k < count.
template <class Real>
struct ToRows {
  template <class Isa>
  static SLIM_INLINE void run(const Real* panel, int count, Real* rows, int row_stride) {
    constexpr int N = lanes<Real, Isa>;
    using V = Vec<Real, N>;
    int k = 0;
    while (k < count && count >= N) {
      for (int r = 0; r < panel_rows; r += N) {
        V square[N];
#pragma GCC unroll 16
        for (int i = 0; i < N; ++i) square[i] = load<V>(panel + (k + i) * panel_rows + r);
        transpose<Real, N>(square);
#pragma GCC unroll 16
        for (int i = 0; i < N; ++i) store(rows + static_cast<std::size_t>(r + i) * row_stride + k, square[i]);
      }
      k = k + N == count ? count : std::min(k + N, count - N);  // the last square may overlap the one before
    }
    for (; k < count; ++k)
      for (int r = 0; r < panel_rows; ++r) rows[static_cast<std::size_t>(r) * row_stride + k] = panel[k * panel_rows + r];
  }
};

// out[i][j] += sum_r a[r][i] b[r][j], in double; where `lower`, only i >= j counts. Rows of a have room for a multiple of
// the tile's rows, rows of b and out for a multiple of its columns.
template <class Real>
struct SumOverRows {
  template <class Isa>
  static SLIM_INLINE void run(const Real* a, int a_stride, const Real* b, int b_stride, int count, int rows, int columns,
                              double* out, int out_stride, bool lower) {
    constexpr int L = lanes<Real, Isa>, M = Isa::tile_rows, N = Isa::tile_vectors;
    using V = Vec<Real, L>;
    for (int j = 0; j < columns; j += N * L)
      for (int i = lower ? j / M * M : 0; i < rows; i += M) {
        V sum[M][N];
        tile_sums<MultiplyAdd>(a + i, a_stride, b + j, b_stride, count, sum);
        Real block[M][N * L];
#pragma GCC unroll 16
        for (int x = 0; x < M; ++x)
#pragma GCC unroll 4
          for (int v = 0; v < N; ++v) store(&block[x][v * L], sum[x][v]);
        for (int x = 0; x < M; ++x) {
          double* to = out + static_cast<std::size_t>(i + x) * out_stride + j;
          for (int v = 0; v < N * L; ++v) to[v] += static_cast<double>(block[x][v]);
        }
      }
  }
};

// sum[k] += factor row[k], the sum of a row, squares; and out[k] = factor row[k].
template <class Real>
struct AddRow {
  template <class Isa>
  static SLIM_INLINE void run(const Real* row, double factor, int count, double* sum) {
    for (int k = 0; k < count; ++k) sum[k] += factor * static_cast<double>(row[k]);
  }
};
template <class Real>
struct SumRow {
  template <class Isa>
  static SLIM_INLINE double run(const Real* row, int count) {
    constexpr int N = lanes<Real, Isa>;
    using V = Vec<Real, N>;
    V part{};
    int k = 0;
    for (; k + N <= count; k += N) part += load<V>(row + k);
    double sum = 0;
    for (int l = 0; l < N; ++l) sum += static_cast<double>(part[l]);
    for (; k < count; ++k) sum += static_cast<double>(row[k]);
    return sum;
  }
};
template <class Real>
struct AddSquares {
  template <class Isa>
  static SLIM_INLINE void run(const Real* row, double factor, int count, double* sum) {
    for (int k = 0; k < count; ++k) sum[k] += factor * static_cast<double>(row[k]) * static_cast<double>(row[k]);
  }
};
template <class Real>
struct ScaleRow {
  template <class Isa>
  static SLIM_INLINE void run(const Real* row, Real factor, int count, Real* out) {
    for (int k = 0; k < count; ++k) out[k] = factor * row[k];
  }
};

// Room that rows need as either side of SumOverRows.
template <class Real>
int room_for(int count) {
  int tile_rows, tile_columns;
  tile_shape<Real>(tile_rows, tile_columns);
  return std::max(rounded_up(count, tile_rows), rounded_up(count, tile_columns));
}

}  // namespace slimsvm
