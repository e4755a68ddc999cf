// Some reflections at a time: H_1 ... H_w = I - V T V'.
#include "linalg/orthogonal.hpp"

#include <algorithm>
#include <cmath>

#include "linalg/vectors.hpp"

namespace slimsvm {

// Some reflections together; the rows of v are their vectors, from the first column's own place on.
struct Reflections {
  Index first, count, length;
  std::vector<double> v, t;

  Square vectors() { return {v.data(), count, length, length, 1}; }
  Square middle() { return {t.data(), count, count, count, 1}; }

  // c -= V T V'c, or with the transpose of T.
  void apply(const Square& c, bool transposed, LinAlgContext& context) {
    if (!c.columns) return;
    std::vector<double> memory(static_cast<std::size_t>(2 * count * c.columns));
    const Square inner{memory.data(), count, c.columns, c.columns, 1}, bent{memory.data() + count * c.columns, count, c.columns, c.columns, 1};
    context.multiply(vectors(), c, inner, Store::set);
    context.multiply(transposed ? middle().transposed() : middle(), inner, bent, Store::set);
    context.multiply(vectors().transposed(), bent, c, Store::subtract);
  }
};

namespace linear {

// The reflection that makes x a multiple of the first unit vector: x becomes its vector, with 1 in the first place. What is
// left of x there, and the factor of the reflection.
inline double reflect(double* x, Index length, double& factor) {
  double most = 0, sum = 0;
  for (Index i = 0; i < length; ++i) most = std::max(most, std::fabs(x[i]));
  factor = 0;
  double rest = 0;
  for (Index i = 1; i < length; ++i) rest = std::max(rest, std::fabs(x[i]));
  const double head = x[0];
  x[0] = 1;
  if (!(rest > 0)) return head;
  for (Index i = 1; i < length; ++i) sum += (x[i] / most) * (x[i] / most);
  const double left = -std::copysign(most * std::sqrt(sum + (head / most) * (head / most)), head);
  factor = (left - head) / left;
  for (Index i = 1; i < length; ++i) x[i] /= head - left;
  return left;
}

}  // namespace linear

std::vector<Index> triangularize(const Square& columns) {
  const Index n = columns.rows, m = columns.columns;
  std::vector<Index> order(static_cast<std::size_t>(n));
  for (Index k = 0; k < n; ++k) order[static_cast<std::size_t>(k)] = k;
  for (Index k = 0; k < n; ++k) {
    Index best = k;
    double most = -1;
    for (Index j = k; j < n; ++j) {
      const double* rest = &columns(j, k);
      const double size = dispatch<LongDot>(rest, rest, m - k);
      if (size > most) most = size, best = j;
    }
    if (best != k) {
      std::swap_ranges(&columns(k, 0), &columns(k, 0) + m, &columns(best, 0));
      std::swap(order[static_cast<std::size_t>(k)], order[static_cast<std::size_t>(best)]);
    }
    double factor;
    double* own = &columns(k, k);
    const double left = linear::reflect(own, m - k, factor);
    for (Index j = k + 1; j < n; ++j) {
      double* column = &columns(j, k);
      const double share = dispatch<LongDot>(static_cast<const double*>(own), static_cast<const double*>(column), m - k);
      dispatch<AddTimes>(-factor * share, static_cast<const double*>(own), m - k, column);
    }
    own[0] = left;
  }
  return order;
}

void orthogonalize(const Square& a, const Square& q, LinAlgContext& context) {
  constexpr Index width = 32;
  const Index m = a.rows, n = a.columns, k = std::min(m, n);
  std::vector<Reflections> all;
  for (Index first = 0; first < k; first += width) {
    Reflections now{first, std::min(width, k - first), m - first, {}, {}};
    now.v.resize(static_cast<std::size_t>(now.count * now.length));
    now.t.assign(static_cast<std::size_t>(now.count * now.count), 0.0);
    const Square v = now.vectors(), t = now.middle();
    for (Index j = 0; j < now.count; ++j)
      for (Index i = 0; i < now.length; ++i) v(j, i) = a(first + i, first + j);
    for (Index j = 0; j < now.count; ++j) {
      const Index length = now.length - j;
      double* own = &v(j, j);
      for (Index i = 0; i < j; ++i) a(first + i, first + j) = v(j, i), v(j, i) = 0;
      a(first + j, first + j) = linear::reflect(own, length, t(j, j));
      for (Index i = j + 1; i < now.length; ++i) a(first + i, first + j) = 0;
      for (Index other = j + 1; other < now.count; ++other) {
        double* column = &v(other, j);
        const double share = dispatch<LongDot>(static_cast<const double*>(own), static_cast<const double*>(column), length);
        dispatch<AddTimes>(-t(j, j) * share, static_cast<const double*>(own), length, column);
      }
      // T grows by a column: -tau T V'v.
      double across[width];
      for (Index i = 0; i < j; ++i) across[i] = dispatch<LongDot>(static_cast<const double*>(&v(i, j)), static_cast<const double*>(own), length);
      for (Index i = 0; i < j; ++i) {
        double sum = 0;
        for (Index l = i; l < j; ++l) sum += t(i, l) * across[l];
        t(i, j) = -t(j, j) * sum;
      }
    }
    now.apply(a.part(first, first + now.count, m - first, n - first - now.count), true, context);
    all.push_back(std::move(now));
  }
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < k; ++j) q(i, j) = i == j;
  for (std::size_t b = all.size(); b-- > 0;) all[b].apply(q.part(all[b].first, all[b].first, m - all[b].first, k - all[b].first), false, context);
}

}  // namespace slimsvm
