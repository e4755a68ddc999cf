// How products are cut into tasks, and which way they go.
#pragma once

#include <vector>

#include "linalg/packed_products.hpp"
#include "linalg/products.hpp"
#include "linalg/unpacked_products.hpp"

namespace slimsvm {

namespace linear {

constexpr Index deep = 512;    // summed at once
constexpr Index tall = 96;     // rows of the result in a task: a multiple of every tile
constexpr Index wide = 512;    // columns of the result in a task
constexpr Index breadth = 2048;  // columns of the right side packed at once

// Rows of a tile, for so many rows of a result.
inline int group_of(Index rows, int tile_rows) { return up(rows, few) < up(rows, tile_rows) && rows < tile_rows ? few : tile_rows; }

// The columns of b, one after the other.
template <class Real>
std::vector<Real> by_columns(const MatrixView<const Real>& b) {
  std::vector<Real> out(static_cast<std::size_t>(b.rows * b.columns));
  for (Index c = 0; c < b.columns; ++c)
    for (Index k = 0; k < b.rows; ++k) out[static_cast<std::size_t>(c * b.rows + k)] = b(k, c);
  return out;
}

// Are so many columns best summed where the left side lies?
template <class Real>
bool unpacked(const MatrixView<const Real>& a, Index columns) {
  const bool along = a.column == 1 || a.columns == 1, across = a.row == 1 || a.rows == 1;
  return columns <= few ? along || across : along && a.columns * static_cast<Index>(sizeof(Real)) >= 512;
}

constexpr Index long_sum = 1 << 12;

template <class Real>
void few_columns(const MatrixView<const Real>& a, const MatrixView<const Real>& b, const MatrixView<Real>& out, Store how, ThreadPool& pool,
                 Monitor& monitor) {
  const std::vector<Real> columns = b.columns == 1 && b.row == 1 ? std::vector<Real>() : by_columns(b);
  const Real* right = columns.empty() ? b.data : columns.data();
  const bool along = a.column == 1 || a.columns == 1;
  constexpr Index part = SumOfRows<Real>::strip;
  pool.run(
      static_cast<std::size_t>(up(out.rows, part) / part),
      [&](std::size_t task, int) {
        const Index first = static_cast<Index>(task) * part;
        const MatrixView<Real> mine = out.part(first, 0, std::min(part, out.rows - first), out.columns);
        // Sums of sums: one running sum over very many numbers would lose digits.
        for (Index k = 0; k < std::max<Index>(a.columns, 1); k += long_sum) {
          const Real* from = a.data + first * a.row + k * a.column;
          const Index depth = std::min(long_sum, a.columns - k);
          const Store now = k == 0 || how == Store::subtract ? how : Store::add;
          if (along)
            dispatch<RowDots<Real>>(from, a.row, right + k, b.rows, depth, mine, now);
          else
            dispatch<SumOfRows<Real>>(from, a.column, right + k, b.rows, depth, mine, now);
        }
      },
      monitor);
}

template <class Real>
void tiled(const MatrixView<const Real>& a, const MatrixView<const Real>& b, const MatrixView<Real>& out, Store how, bool lower, ThreadPool& pool,
           Monitor& monitor) {
  int tile_rows, tile_columns;
  tile_shape<Real>(tile_rows, tile_columns);
  const int group = group_of(out.rows, tile_rows);
  Buffer<Real> right;
  std::vector<Buffer<Real>> left(pool.size());
  const Index most = std::min(breadth, up(out.columns, tile_columns)), bands = up(out.rows, tall) / tall;
  Real* panels = right.reserve(static_cast<std::size_t>(std::min(deep, a.columns) * most));
  for (Index j = 0; j < out.columns; j += most) {
    const Index columns = std::min(most, out.columns - j), pieces = up(columns, wide) / wide;
    for (Index k = 0; k < a.columns; k += deep) {
      const Index depth = std::min(deep, a.columns - k);
      const Store now = k == 0 ? how : how == Store::subtract ? how : Store::add;
      pool.run(
          static_cast<std::size_t>(pieces),
          [&](std::size_t piece, int) {
            const Index first = static_cast<Index>(piece) * wide;
            dispatch<PackGroups<Real>>(b.part(k, j + first, depth, std::min(wide, columns - first)).transposed(), tile_columns, panels + first * depth);
          },
          monitor);
      pool.run(
          static_cast<std::size_t>(bands * pieces),
          [&](std::size_t task, int thread) {
            const Index top = static_cast<Index>(task) / pieces * tall, first = static_cast<Index>(task) % pieces * wide;
            const Index rows = std::min(tall, out.rows - top), width = std::min(wide, columns - first);
            if (lower && j + first > top + rows - 1) return;
            Real* groups = left[thread].reserve(static_cast<std::size_t>(up(std::min(tall, out.rows), group) * std::min(deep, a.columns)));
            dispatch<PackGroups<Real>>(a.part(top, k, rows, depth), group, groups);
            dispatch<PackedProduct<Real>>(static_cast<const Real*>(groups), group, static_cast<const Real*>(panels + first * depth), depth,
                                  out.part(top, j + first, rows, width), now, lower, top - j - first);
          },
          monitor);
    }
  }
}

}  // namespace linear

template <class Real>
void multiply(MatrixView<const Real> a, MatrixView<const Real> b, MatrixView<Real> out, Store how, ThreadPool& pool, Monitor& monitor,
              bool lower) {
  using linear::up;
  if (out.rows == 0 || out.columns == 0) return;
  if (a.columns == 0) {
    if (how == Store::set)
      for (Index i = 0; i < out.rows; ++i)
        for (Index j = 0; j < out.columns; ++j) out(i, j) = Real(0);
    return;
  }
  const auto turn = [&] {
    const MatrixView<const Real> left = a;
    a = b.transposed(), b = left.transposed(), out = out.transposed();
  };
  if (out.rows < out.columns && out.rows <= linear::some && linear::unpacked<Real>(b.transposed(), out.rows)) turn();
  if (out.columns <= linear::some && linear::unpacked<Real>(a, out.columns))
    return linear::few_columns<Real>(a, b, out, how, pool, monitor);
  int tile_rows, tile_columns;
  tile_shape<Real>(tile_rows, tile_columns);
  const auto padded = [&](Index rows, Index columns) { return up(rows, linear::group_of(rows, tile_rows)) * up(columns, tile_columns); };
  if (!lower && padded(out.columns, out.rows) < padded(out.rows, out.columns)) turn();
  linear::tiled<Real>(a, b, out, how, lower, pool, monitor);
}

}  // namespace slimsvm
