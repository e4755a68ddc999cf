#include "linalg/factors.hpp"

#include <cmath>
#include <limits>
#include <numeric>

#include "linalg/cholesky.hpp"

namespace slimsvm {

namespace linear {
constexpr Index factor_block = 96, direct = 160;  // rows at once; rows up to which blocks do not pay
}

void invert_lower(const Square& l, LinAlgContext& context) {
  const Index n = l.rows;
  if (n <= linear::factor_block) {
    dispatch<InvertLower>(context.copied(l), static_cast<int>(n));
    context.back(l);
    return;
  }
  // (A 0; B C): below the inverses of A and C there is -C^-1 B A^-1.
  const Index half = linear::up(n / 2, 32), rest = n - half;
  const Square a = l.part(0, 0, half, half), b = l.part(half, 0, rest, half), c = l.part(half, half, rest, rest);
  invert_lower(a, context);
  invert_lower(c, context);
  constexpr Index wide = 256, tall = 192;
  std::vector<double> memory(static_cast<std::size_t>(rest * std::min(wide, half)));
  for (Index j = 0; j < half; j += wide) {  // later columns need only what is to the right of these
    const Index width = std::min(wide, half - j);
    const Square between{memory.data(), rest, width, width, 1};
    context.multiply(b.part(0, j, rest, half - j), a.part(j, j, half - j, width), between, Store::set);
    for (Index i = 0; i < rest; i += tall) {
      const Index rows = std::min(tall, rest - i);
      const Square to = b.part(i, j, rows, width);
      context.multiply(c.part(i, 0, rows, i + rows), between.part(0, 0, i + rows, width), to, Store::set);
      for (Index r = 0; r < rows; ++r)
        for (Index k = 0; k < width; ++k) to(r, k) = -to(r, k);
    }
  }
}

bool factorize(const Square& m, LinAlgContext& context) {
  const Index n = m.rows;
  if (n <= linear::direct) {
    const bool definite = dispatch<CholeskyFactor>(context.copied(m), static_cast<int>(n));
    context.back(m);
    return definite;
  }
  std::vector<double> solved(static_cast<std::size_t>(n * linear::factor_block)), small;
  for (Index first = 0; first < n; first += linear::factor_block) {
    const Index count = std::min(linear::factor_block, n - first), below = n - first - count;
    const Square corner = m.part(first, first, count, count), column = m.part(first + count, first, below, count);
    const Square before = m.part(first, 0, count, first);
    context.multiply(before, before.transposed(), corner, Store::subtract, true);
    if (!dispatch<CholeskyFactor>(context.copied(corner), static_cast<int>(count))) return false;
    context.back(corner);
    if (!below) break;
    context.multiply(m.part(first + count, 0, below, first), before.transposed(), column, Store::subtract);
    small.assign(context.block.begin(), context.block.end());
    dispatch<InvertLower>(small.data(), static_cast<int>(count));
    for (Index i = 0; i < count; ++i) std::fill_n(small.data() + i * count + i + 1, count - i - 1, 0.0);
    const Square inverse{small.data(), count, count, count, 1}, result{solved.data(), below, count, count, 1};
    context.multiply(column, inverse.transposed(), result, Store::set);
    for (Index i = 0; i < below; ++i) std::copy_n(&result(i, 0), count, &column(i, 0));
  }
  return true;
}

std::vector<Index> factorize_pivoted(const Square& a, const Square& g, double least, LinAlgContext& context) {
  const Index n = a.rows;
  std::vector<double> rest(static_cast<std::size_t>(n));
  std::vector<Index> pivots;
  for (Index i = 0; i < n; ++i) rest[i] = a(i, i);
  for (Index k = 0; k < n; ++k) {
    const Index p = std::max_element(rest.begin(), rest.end()) - rest.begin();
    if (!(rest[p] > least)) break;
    const double root = std::sqrt(rest[p]);
    double* row = &g(k, 0);
    std::copy_n(&a(p, 0), n, row);
    context.multiply(g.part(0, p, k, 1).transposed(), g.part(0, 0, k, n), g.part(k, 0, 1, n), Store::subtract);
    for (Index i = 0; i < n; ++i) row[i] /= root;
    for (const Index before : pivots) row[before] = 0;
    row[p] = root;
    for (Index i = 0; i < n; ++i) rest[i] -= row[i] * row[i];
    rest[p] = -std::numeric_limits<double>::infinity();
    pivots.push_back(p);
  }
  return pivots;
}

// x = t^-1 x for a triangle of a few rows.
struct SolveCorner {
  template <class Isa>
  static SLIM_INLINE void run(Square t, Square x, Triangle kind) {
    const Index n = t.rows, width = x.columns;
    const auto subtract = [&](Index from, double factor, Index to) SLIM_INLINE_LAMBDA {
      const double* source = &x(from, 0);
      double* target = &x(to, 0);
      for (Index c = 0; c < width; ++c) target[c] -= factor * source[c];
    };
    const auto divide = [&](Index i) SLIM_INLINE_LAMBDA {
      const double inverse = 1 / t(i, i);
      double* row = &x(i, 0);
      for (Index c = 0; c < width; ++c) row[c] = width == 1 ? row[c] / t(i, i) : row[c] * inverse;
    };
    if (kind == Triangle::upper || kind == Triangle::lower_transposed) {
      for (Index i = n - 1; i >= 0; --i) {
        divide(i);
        for (Index k = 0; k < i; ++k) subtract(i, kind == Triangle::upper ? t(k, i) : t(i, k), k);
      }
    } else {
      for (Index i = 0; i < n; ++i) {
        for (Index k = 0; k < i; ++k) subtract(k, t(i, k), i);
        if (kind == Triangle::lower) divide(i);
      }
    }
  }
};

void solve_triangle(const Square& t, const Square& x, Triangle kind, LinAlgContext& context) {
  constexpr Index size = 64;
  const Index n = t.rows, blocks = (n + size - 1) / size;
  const bool upwards = kind == Triangle::upper || kind == Triangle::lower_transposed;
  for (Index block = 0; block < blocks; ++block) {
    const Index first = (upwards ? blocks - 1 - block : block) * size, count = std::min(size, n - first), last = first + count;
    const Square mine = x.part(first, 0, count, x.columns), above = x.part(0, 0, first, x.columns);
    const Square below = x.part(last, 0, n - last, x.columns);
    if (kind == Triangle::upper)
      context.multiply(t.part(first, last, count, n - last), below, mine, Store::subtract);
    else if (upwards)
      context.multiply(t.part(last, first, n - last, count).transposed(), below, mine, Store::subtract);
    else
      context.multiply(t.part(first, 0, count, first), above, mine, Store::subtract);
    dispatch<SolveCorner>(t.part(first, first, count, count), mine, kind);
  }
}

bool factorize_general(const Square& m, std::vector<Index>& order, LinAlgContext& context) {
  constexpr Index size = 48;
  const Index n = m.rows;
  bool regular = true;
  order.resize(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), Index(0));
  for (Index first = 0; first < n; first += size) {
    const Index last = std::min(first + size, n);
    for (Index k = first; k < last; ++k) {
      Index best = k;
      for (Index i = k + 1; i < n; ++i)
        if (std::fabs(m(i, k)) > std::fabs(m(best, k))) best = i;
      if (m(best, k) == 0) {
        regular = false;
        continue;
      }
      if (best != k) {
        std::swap_ranges(&m(k, 0), &m(k, 0) + n, &m(best, 0));
        std::swap(order[k], order[best]);
      }
      const double* pivot = &m(k, 0);
      for (Index i = k + 1; i < n; ++i) {
        double* row = &m(i, 0);
        const double factor = row[k] /= pivot[k];
        for (Index j = k + 1; j < last; ++j) row[j] -= factor * pivot[j];
      }
    }
    if (last == n) break;
    const Index count = last - first, right = n - last;
    const Square top = m.part(first, last, count, right);
    solve_triangle(m.part(first, first, count, count), top, Triangle::unit_lower, context);
    context.multiply(m.part(last, first, right, count), top, m.part(last, last, right, right), Store::subtract);
  }
  return regular;
}

}  // namespace slimsvm
