// Products of packed sides, by register tiles.
#pragma once

#include <algorithm>
#include <cstring>

#include "cpu/register_tile.hpp"
#include "cpu/transpose.hpp"
#include "linalg/unpacked_products.hpp"

namespace slimsvm {
namespace linear {

// Rows of a in groups, [group][k][row in group], zeros below the last.
template <class Real>
struct PackGroups {
  // S rows, transposed in squares.
  template <int G, int S>
  static SLIM_INLINE void turned(const Real* from, std::ptrdiff_t row, Index columns, Real* to) {
    using V = Vec<Real, S>;
    Index k = 0;
    for (; k + S <= columns; k += S) {
      V square[S];
#pragma GCC unroll 16
      for (int i = 0; i < S; ++i) square[i] = load<V>(from + i * row + k);
      transpose<Real, S>(square);
#pragma GCC unroll 16
      for (int i = 0; i < S; ++i) store(to + (k + i) * G, square[i]);
    }
    for (; k < columns; ++k)
      for (int i = 0; i < S; ++i) to[k * G + i] = from[i * row + k];
  }
  template <int G, int S>
  static SLIM_INLINE void groups_of(const MatrixView<const Real>& a, Real* to) {
    for (Index first = 0; first < a.rows; first += G, to += a.columns * G) {
      const int count = static_cast<int>(std::min<Index>(G, a.rows - first));
      const Real* from = a.data + first * a.row;
      if (count < G) std::fill_n(to, a.columns * G, Real(0));
      if (a.row == 1 && count == G) {
        for (Index k = 0; k < a.columns; ++k)
          for (int i = 0; i < G; ++i) to[k * G + i] = from[k * a.column + i];
      } else if (a.column == 1) {
        int i = 0;
        if constexpr (G % S == 0)
          for (; i + S <= count; i += S) turned<G, S>(from + i * a.row, a.row, a.columns, to + i);
        for (; i < count; ++i)
          for (Index k = 0; k < a.columns; ++k) to[k * G + i] = from[i * a.row + k];
      } else {
        for (Index k = 0; k < a.columns; ++k)
          for (int i = 0; i < count; ++i) to[k * G + i] = from[i * a.row + k * a.column];
      }
    }
  }
  template <class Isa>
  static SLIM_INLINE void run(MatrixView<const Real> a, int group, Real* to) {
    constexpr int L = lanes<Real, Isa>;
    if (group == few)
      groups_of<few, std::min(L, 4)>(a, to);
    else if (group == Isa::tile_rows)
      groups_of<Isa::tile_rows, std::min(L, Isa::tile_rows % 4 == 0 ? 4 : 2)>(a, to);
    else
      groups_of<Isa::tile_vectors * L, L>(a, to);
  }
};

// out(i, j) from packed groups of left rows and packed panels of right columns; where `lower`, only j <= i + above counts.
template <class Real>
struct PackedProduct {
  // M x N vectors of the result from a group of G rows; `to` has room for rows x columns of it.
  template <class Isa, int G, int M, int N>
  static SLIM_INLINE void tile(const Real* left, const Real* right, Index depth, Real* to, std::ptrdiff_t row, std::ptrdiff_t column, int rows,
                               int columns, Store how) {
    constexpr int L = lanes<Real, Isa>, W = Isa::tile_vectors * L;
    using V = Vec<Real, L>;
    V sum[M][N];
    tile_sums<MultiplyAdd>(left, G, right, W, depth, sum);
    if (column == 1 && columns >= N * L) {
#pragma GCC unroll 16
      for (int x = 0; x < M; ++x) {
        if (x >= rows) break;
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v) {
          Real* at = to + x * row + v * L;
          store(at, how == Store::set ? sum[x][v] : how == Store::add ? load<V>(at) + sum[x][v] : load<V>(at) - sum[x][v]);
        }
      }
      return;
    }
    Real block[M][N * L];
#pragma GCC unroll 16
    for (int x = 0; x < M; ++x)
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) store(&block[x][v * L], sum[x][v]);
    if (column == 1 && how == Store::set)
      for (int x = 0; x < rows; ++x) std::memcpy(to + x * row, block[x], static_cast<std::size_t>(columns) * sizeof(Real));
    else if (row == 1)
      for (int y = 0; y < columns; ++y)
        for (int x = 0; x < rows; ++x) keep(to[x + y * column], block[x][y], how);
    else
      for (int x = 0; x < rows; ++x)
        for (int y = 0; y < columns; ++y) keep(to[x * row + y * column], block[x][y], how);
  }
  template <class Isa, int M>
  static SLIM_INLINE void all(const Real* a, const Real* b, Index depth, const MatrixView<Real>& out, Store how, bool lower, Index above) {
    constexpr int N = Isa::tile_vectors, L = lanes<Real, Isa>, W = N * L;
    for (Index j = 0; j < out.columns; j += W) {
      const int columns = static_cast<int>(std::min<Index>(W, out.columns - j));
      for (Index i = 0; i < out.rows; i += M) {
        if (lower && j > i + M - 1 + above) continue;
        const int rows = static_cast<int>(std::min<Index>(M, out.rows - i));
        const Real *left = a + i * depth, *right = b + j * depth;
        if (rows <= few && columns > L)
          tile<Isa, M, few, N>(left, right, depth, &out(i, j), out.row, out.column, rows, columns, how);
        else if (columns > L)
          tile<Isa, M, M, N>(left, right, depth, &out(i, j), out.row, out.column, rows, columns, how);
        else
          tile<Isa, M, M, 1>(left, right, depth, &out(i, j), out.row, out.column, rows, columns, how);
      }
    }
  }
  template <class Isa>
  static SLIM_INLINE void run(const Real* a, int group, const Real* b, Index depth, MatrixView<Real> out, Store how, bool lower, Index above) {
    if (group == few)
      all<Isa, few>(a, b, depth, out, how, lower, above);
    else
      all<Isa, Isa::tile_rows>(a, b, depth, out, how, lower, above);
  }
};

}  // namespace linear
}  // namespace slimsvm
