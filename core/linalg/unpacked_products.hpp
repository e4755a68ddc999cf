// Products with few columns: the left side is read where it lies.
#pragma once

#include <algorithm>

#include "linalg/matrix_view.hpp"
#include "linalg/vectors.hpp"

namespace slimsvm {
namespace linear {

constexpr int few = 4, some = 16;  // columns that are not worth packing for: any rows; long rows in one piece

template <class Real, int N, int... L>
SLIM_INLINE Vec<typename IntOf<Real>::type, N> counted_lanes(std::integer_sequence<int, L...>) {
  return Vec<typename IntOf<Real>::type, N>{L...};
}
template <class Real, int N>
SLIM_INLINE Vec<typename IntOf<Real>::type, N> lane_numbers() {
  return counted_lanes<Real, N>(std::make_integer_sequence<int, N>());
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

}  // namespace linear
}  // namespace slimsvm
