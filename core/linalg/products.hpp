// Products of matrices of any layout, and factors of small ones, on as many threads as are given: BLAS would take its own.
//
// A product is cut into tasks in the same way whatever the threads, and each number is summed in the same order. Few
// columns are dots along rows, or sums of rows; all others are packed into register tiles, depth by depth.
#pragma once

#include <array>
#include <vector>

#include "cpu/buffer.hpp"
#include "cpu/register_tile.hpp"
#include "cpu/threads.hpp"
#include "cpu/transpose.hpp"

namespace slimsvm {

// A matrix where it lies: number (i, j) is data[i * row + j * column].
template <class T>
struct MatrixView {
  T* data;
  Index rows, columns;
  std::ptrdiff_t row, column;

  T& operator()(Index i, Index j) const { return data[i * row + j * column]; }
  MatrixView transposed() const { return {data, columns, rows, column, row}; }
  MatrixView part(Index i, Index j, Index height, Index width) const { return {data + i * row + j * column, height, width, row, column}; }
  MatrixView<const T> fixed() const { return {data, rows, columns, row, column}; }
};

enum class Store { set, add, subtract };  // what becomes of a product

namespace linear {

constexpr Index deep = 512;    // summed at once
constexpr Index tall = 96;     // rows of the result in a task: a multiple of every tile
constexpr Index wide = 512;    // columns of the result in a task
constexpr Index breadth = 2048;  // columns of the right side packed at once
constexpr int few = 4, some = 16;  // columns that are not worth packing for: any rows; long rows in one piece

template <class Real, int N, int... L>
SLIM_INLINE Vec<typename IntOf<Real>::type, N> counted_lanes(std::integer_sequence<int, L...>) {
  return Vec<typename IntOf<Real>::type, N>{L...};
}
template <class Real, int N>
SLIM_INLINE Vec<typename IntOf<Real>::type, N> lane_numbers() {
  return counted_lanes<Real, N>(std::make_integer_sequence<int, N>());
}

// The sum of the lanes, in pairs.
template <class Real, int N, int Step = N / 2>
SLIM_INLINE Real across(Vec<Real, N> v) {
  const Vec<Real, N> sum = v + swapped<Real, N, Step>(v);
  if constexpr (Step == 1)
    return sum[0];
  else
    return across<Real, N, Step / 2>(sum);
}

template <class Real>
SLIM_INLINE void keep(Real& to, Real value, Store how) {
  to = how == Store::set ? value : how == Store::add ? to + value : to - value;
}

// out(i, c) = sum_k a[i * row + k] b[c * width + k]: dots along rows.
template <class Real>
struct RowDots {
  template <class Isa, int R, int C>
  static SLIM_INLINE void group(const Real* a, std::ptrdiff_t row, const Real* b, Index pitch, Index width, const MatrixView<Real>& out, Store how) {
    constexpr int L = lanes<Real, Isa>, U = C == 1 ? 2 : 1;
    using V = Vec<Real, L>;
    V part[R][C][U];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c)
#pragma GCC unroll 2
        for (int u = 0; u < U; ++u) part[r][c][u] = V{};
    // From k on, without the first lanes.
    const auto add = [&](Index k, int u, int without) SLIM_INLINE_LAMBDA {
      const auto counted = [&](V v) SLIM_INLINE_LAMBDA { return without ? (lane_numbers<Real, L>() >= without ? v : V{}) : v; };
      V y[C];
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c) y[c] = counted(load<V>(b + c * pitch + k));
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const V x = counted(load<V>(a + r * row + k));
#pragma GCC unroll 4
        for (int c = 0; c < C; ++c) part[r][c][u] += x * y[c];
      }
    };
    Index k = 0;
    for (; k + U * L <= width; k += U * L)
#pragma GCC unroll 2
      for (int u = 0; u < U; ++u) add(k + u * L, u, 0);
    if (U == 2 && k + L <= width) add(k, 0, 0), k += L;
    if (k < width && width >= L) add(width - L, 0, static_cast<int>(L - (width - k))), k = width;
    Real sums[R][C];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c) {
        sums[r][c] = across<Real, L>(U == 2 ? part[r][c][0] + part[r][c][U - 1] : part[r][c][0]);
        for (Index rest = k; rest < width; ++rest) sums[r][c] += a[r * row + rest] * b[c * pitch + rest];
      }
    for (int r = 0; r < R; ++r)
      for (int c = 0; c < C; ++c) keep(out(r, c), sums[r][c], how);
  }
  // Columns in fours: rows of a stay near.
  template <class Isa, int R>
  static SLIM_INLINE void rows(const Real* a, std::ptrdiff_t row, const Real* b, Index pitch, Index width, const MatrixView<Real>& out, Index i, Store how) {
    for (Index c = 0; c < out.columns; c += few) {
      const MatrixView<Real> to = out.part(i, c, R, std::min<Index>(few, out.columns - c));
      const Real *left = a + i * row, *right = b + c * pitch;
      switch (to.columns) {
        case 1: group<Isa, R, 1>(left, row, right, pitch, width, to, how); break;
        case 2: group<Isa, R, 2>(left, row, right, pitch, width, to, how); break;
        case 3: group<Isa, R, 3>(left, row, right, pitch, width, to, how); break;
        default: group<Isa, R, few>(left, row, right, pitch, width, to, how);
      }
    }
  }
  template <class Isa>
  static SLIM_INLINE void run(const Real* a, std::ptrdiff_t row, const Real* b, Index pitch, Index width, MatrixView<Real> out, Store how) {
    Index i = 0;
    if (out.columns == 1)
      for (; i + 8 <= out.rows; i += 8) group<Isa, 8, 1>(a + i * row, row, b, pitch, width, out.part(i, 0, 8, 1), how);
    for (; i + 4 <= out.rows; i += 4) rows<Isa, 4>(a, row, b, pitch, width, out, i, how);
    for (; i < out.rows; ++i) rows<Isa, 1>(a, row, b, pitch, width, out, i, how);
  }
};

// out(i, c) = sum_k a[i + k * step] b[c * pitch + k]: sums of rows, each lying in one piece.
template <class Real>
struct SumOfRows {
  static constexpr int strip = 512;
  template <class Isa>
  static SLIM_INLINE void run(const Real* a, std::ptrdiff_t step, const Real* b, Index pitch, Index depth, MatrixView<Real> out, Store how) {
    Real sums[few][strip];
    for (Index first = 0; first < out.rows; first += strip) {
      const int count = static_cast<int>(std::min<Index>(strip, out.rows - first));
      for (int c = 0; c < out.columns; ++c) std::fill_n(sums[c], count, Real(0));
      Index k = 0;
      for (; k + 8 <= depth; k += 8)
        for (int c = 0; c < out.columns; ++c) add<Isa, 8>(a + first + k * step, step, b + c * pitch + k, count, sums[c]);
      for (; k < depth; ++k)
        for (int c = 0; c < out.columns; ++c) add<Isa, 1>(a + first + k * step, step, b + c * pitch + k, count, sums[c]);
      for (int c = 0; c < out.columns; ++c)
        for (int i = 0; i < count; ++i) keep(out(first + i, c), sums[c][i], how);
    }
  }

 private:
  template <class Isa, int R>
  static SLIM_INLINE void add(const Real* a, std::ptrdiff_t step, const Real* b, int count, Real* sums) {
    int i = 0;
    add_some<R, lanes<Real, Isa>>(a, step, b, count, sums, i);
    for (; i < count; ++i) {
      Real sum = sums[i];
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) sum += b[r] * a[r * step + i];
      sums[i] = sum;
    }
  }
  // As many as vectors hold, ever shorter ones.
  template <int R, int L>
  static SLIM_INLINE void add_some(const Real* a, std::ptrdiff_t step, const Real* b, int count, Real* sums, int& i) {
    using V = Vec<Real, L>;
    for (; i + L <= count; i += L) {
      V sum = load<V>(sums + i);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) sum += splat<V>(b[r]) * load<V>(a + r * step + i);
      store(sums + i, sum);
    }
    if constexpr (L > 2) add_some<R, L / 2>(a, step, b, count, sums, i);
  }
};

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
struct Tiles {
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

inline Index up(Index n, Index unit) { return (n + unit - 1) / unit * unit; }

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
            dispatch<Tiles<Real>>(static_cast<const Real*>(groups), group, static_cast<const Real*>(panels + first * depth), depth,
                                  out.part(top, j + first, rows, width), now, lower, top - j - first);
          },
          monitor);
    }
  }
}

}  // namespace linear

// --- vectors ---------------------------------------------------------------------------------------------------------

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

// --- matrices --------------------------------------------------------------------------------------------------------

// out = a b, or what `how` says. `lower`: only numbers on and below the diagonal count.
template <class Real>
void multiply(MatrixView<const Real> a, MatrixView<const Real> b, MatrixView<Real> out, Store how, ThreadPool& pool, Monitor& monitor,
              bool lower = false) {
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
