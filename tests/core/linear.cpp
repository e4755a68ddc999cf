// Products and factors against sums in long double, and on several threads.
#include "check.hpp"
#include "linalg/factors.hpp"

namespace tests {

using namespace slimsvm;

namespace {

template <class Real>
std::vector<Real> filled(Index count, std::uint64_t seed) {
  Random random(seed);
  std::vector<Real> out(static_cast<std::size_t>(count));
  for (Real& value : out) value = static_cast<Real>(random.symmetric());
  return out;
}

// The same numbers lying by rows, by columns, or with gaps.
template <class Real>
struct Laid {
  std::vector<Real> memory;
  MatrixView<Real> view;
  Laid(Index rows, Index columns, int layout, std::uint64_t seed) {
    const std::ptrdiff_t step = layout == 2 ? 3 : 1;
    memory = filled<Real>(std::max<Index>(1, rows * columns * step), seed);
    view = layout == 1 ? MatrixView<Real>{memory.data(), rows, columns, 1, rows}
                       : MatrixView<Real>{memory.data(), rows, columns, columns * step, step};
  }
};

template <class Real>
void product(Index rows, Index depth, Index columns, int left, int right, bool lower) {
  static ThreadPool alone(1), together(3);
  Monitor monitor;
  const Laid<Real> a(rows, depth, left, 1), b(depth, columns, right, 2);
  const std::vector<Real> before = filled<Real>(rows * columns, 3);
  for (const Store how : {Store::set, Store::add, Store::subtract}) {
    std::vector<std::vector<Real>> results;
    for (ThreadPool* pool : {&alone, &together}) {
      results.push_back(before);
      multiply<Real>(a.view.fixed(), b.view.fixed(), {results.back().data(), rows, columns, columns, 1}, how, *pool, monitor, lower);
    }
    check(results[0] == results[1], "a product is the same on more threads");
    for (Index i = 0; i < rows; ++i)
      for (Index j = 0; j < (lower ? std::min(i + 1, columns) : columns); ++j) {
        long double sum = 0, size = 0;
        for (Index k = 0; k < depth; ++k) sum += static_cast<long double>(a.view(i, k)) * b.view(k, j), size += std::fabs(a.view(i, k) * b.view(k, j));
        const double old = before[static_cast<std::size_t>(i * columns + j)], s = static_cast<double>(sum);
        const double expected = how == Store::set ? s : how == Store::add ? old + s : old - s;
        const double unit = std::numeric_limits<Real>::epsilon();
        check_near(results[0][static_cast<std::size_t>(i * columns + j)], expected,
                   unit * (static_cast<double>(depth) * static_cast<double>(size) + std::fabs(expected)), "a product");
      }
  }
}

struct Workplace {
  ThreadPool pool;
  Monitor monitor;
  LinAlgContext context{pool, monitor};
  explicit Workplace(int threads) : pool(threads) {}
};

Square whole(std::vector<double>& memory, Index n) { return {memory.data(), n, n, n, 1}; }

// Each is multiplied out again.
void factors(Index n) {
  const std::vector<double> x = filled<double>(n * n, 5);
  std::vector<double> a(x.size(), 0.0), l, other;
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j) {
      for (Index k = 0; k < n; ++k) a[i * n + j] += x[i * n + k] * x[j * n + k];
      if (i == j) a[i * n + j] += 1;
    }
  double most = 0;
  for (Index i = 0; i < n; ++i) most = std::max(most, a[i * n + i]);
  const double near = 1e-15 * static_cast<double>(n + 10) * most;
  Workplace one(1), three(3);
  l = other = a;
  check(factorize(whole(l, n), one.context) && factorize(whole(other, n), three.context), "a positive definite matrix has a factor");
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j <= i; ++j) {
      double sum = 0;
      for (Index k = 0; k <= j; ++k) sum += l[i * n + k] * l[j * n + k];
      check_near(sum, a[i * n + j], near, "a Cholesky factor");
      check(l[i * n + j] == other[i * n + j], "a factor is the same on more threads");
    }
  std::vector<double> inverse = l;
  for (Index i = 0; i < n; ++i) std::fill_n(inverse.data() + i * n + i + 1, n - i - 1, 0.0);
  invert_lower(whole(inverse, n), one.context);
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j <= i; ++j) {
      double sum = 0;
      for (Index k = j; k <= i; ++k) sum += l[i * n + k] * inverse[k * n + j];
      check_near(sum, i == j ? 1 : 0, 1e-12 * static_cast<double>(n + 10), "the inverse of a triangle");
    }
  constexpr Index width = 3;
  std::vector<double> b = filled<double>(n * width, 6), solved = b;
  for (const Triangle kind : {Triangle::lower, Triangle::lower_transposed}) solve_triangle(whole(l, n), {solved.data(), n, width, width, 1}, kind, one.context);
  std::vector<Index> order;
  std::vector<double> general = x, found(b.size());
  check(factorize_general(whole(general, n), order, one.context), "random numbers are a regular matrix");
  for (Index i = 0; i < n; ++i) std::copy_n(b.data() + order[i] * width, width, found.data() + i * width);
  for (const Triangle kind : {Triangle::unit_lower, Triangle::upper}) solve_triangle(whole(general, n), {found.data(), n, width, width, 1}, kind, one.context);
  for (Index i = 0; i < n; ++i)
    for (Index c = 0; c < width; ++c) {
      double definite = 0, any = 0, size = 0, size_any = 0;
      for (Index k = 0; k < n; ++k) {
        definite += a[i * n + k] * solved[k * width + c], size += std::fabs(a[i * n + k] * solved[k * width + c]);
        any += x[i * n + k] * found[k * width + c], size_any += std::fabs(x[i * n + k] * found[k * width + c]);
      }
      const double unit = 1e-14 * static_cast<double>(n + 10);
      check_near(definite, b[i * width + c], unit * (size + 1), "a solution by a Cholesky factor");
      check_near(any, b[i * width + c], unit * (size_any + 1), "a solution by elimination");
    }
  a[(n - 1) * n + n - 1] = -1;
  check(!factorize(whole(a, n), one.context), "an indefinite matrix has no factor");
}

}  // namespace

void linear_algebra() {
  for (const Index rows : {1, 5, 13, 100})
    for (const Index columns : {1, 3, 7, 17, 40})
      for (const Index depth : {0, 1, 9, 70, 300})
        for (int left = 0; left < 3; ++left)
          for (int right = 0; right < 3; ++right) {
            if (rows * columns * depth > 20000 && left != right) continue;
            product<double>(rows, depth, columns, left, right, false);
            product<float>(rows, depth, columns, left, right, false);
          }
  product<double>(600, 3, 2, 0, 0, false);
  product<float>(7, 3, 2100, 0, 1, false);
  product<double>(120, 20, 120, 1, 0, true);
  for (const Index n : {1, 2, 30, 97, 161, 230}) factors(n);
}

}  // namespace tests
