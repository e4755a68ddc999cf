// L-BFGS: minima that are known, within bounds and without; orthogonal and pivoted factors.
#include "check.hpp"
#include "optimize/lbfgs.hpp"
#include "linalg/orthogonal.hpp"

namespace tests {

using namespace slimsvm;

namespace {

using Numbers = std::vector<double>;

// Until it ends; gradients come from `function`.
template <class Function>
Lbfgs::Request minimise(Lbfgs& method, Function function, int most) {
  auto wish = Lbfgs::Request::evaluate;
  Numbers gradient(method.x().size());
  for (int steps = 0; steps < most;) {
    if (wish == Lbfgs::Request::evaluate) {
      const double value = function(method.x(), gradient);
      wish = method.update(value, gradient.data());
    } else if (wish == Lbfgs::Request::iterate) {
      ++steps;
      wish = method.advance();
    } else {
      break;
    }
  }
  return wish;
}

double bowl(const Numbers& x, Numbers& gradient) {  // lowest at 1, 2, 3, ...
  double value = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double weight = 1 + static_cast<double>(i * i), away = x[i] - static_cast<double>(i + 1);
    value += 0.5 * weight * away * away;
    gradient[i] = weight * away;
  }
  return value;
}

double valley(const Numbers& x, Numbers& gradient) {  // Rosenbrock's, lowest at 1
  double value = 0;
  std::fill(gradient.begin(), gradient.end(), 0.0);
  for (std::size_t i = 0; i + 1 < x.size(); ++i) {
    const double off = x[i + 1] - x[i] * x[i];
    value += 100 * off * off + (1 - x[i]) * (1 - x[i]);
    gradient[i + 1] += 200 * off;
    gradient[i] += -400 * off * x[i] - 2 * (1 - x[i]);
  }
  return value;
}

void without_bounds() {
  for (const std::size_t n : {1, 7, 30}) {
    Lbfgs method(Numbers(n, 0.0), 20, {}, {}, 0.0, 1e-9);
    check(minimise(method, bowl, 500) == Lbfgs::Request::converged, "a bowl's minimum is found");
    for (std::size_t i = 0; i < n; ++i) check_near(method.x()[i], static_cast<double>(i + 1), 1e-8, "a bowl's minimum");
  }
  Lbfgs method(Numbers(40, -1.0), 10, {}, {}, 0.0, 1e-7);
  minimise(method, valley, 2000);
  check(method.outward() <= 1e-7, "the bottom of a valley is flat");
}

void within_bounds() {
  constexpr std::size_t n = 30;
  const Numbers lower(n, 2.5), upper(n, 20.25);
  Lbfgs method(Numbers(n, 0.0), 20, lower, upper, 0.0, 1e-9);
  check(minimise(method, bowl, 500) == Lbfgs::Request::converged, "a bowl's minimum within bounds is found");
  // The value there is about 1e5, known to 1e-11, and it is flat: places are known to the root of that.
  for (std::size_t i = 0; i < n; ++i)
    check_near(method.x()[i], std::min(std::max(static_cast<double>(i + 1), 2.5), 20.25), 1e-5, "a bowl's minimum within bounds");
  Lbfgs narrow(Numbers(20, 0.1), 10, Numbers(20, -0.5), Numbers(20, 0.6), 0.0, 1e-7);
  minimise(narrow, valley, 2000);
  check(narrow.outward() <= 1e-6, "no variable can go on within its bounds");
}

void no_way_down() {
  const auto wrong = [](const Numbers& x, Numbers& gradient) {
    for (double& g : gradient) g = -1;
    return x[0] + x[1];
  };
  Lbfgs method(Numbers(2, 0.0), 5, {}, {}, 0.0, 1e-9);
  check(minimise(method, wrong, 100) == Lbfgs::Request::stuck, "a gradient that points the wrong way is noticed");
}

void orthogonal(Index m, Index n) {
  const Numbers original = numbers(m, n, 1.0, 4);
  const Index k = std::min(m, n);
  Numbers r = original, q(static_cast<std::size_t>(m * k));
  ThreadPool pool(1);
  Monitor monitor;
  LinAlgContext context{pool, monitor};
  orthogonalize({r.data(), m, n, n, 1}, {q.data(), m, k, k, 1}, context);
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < n; ++j) {
      double sum = 0;
      for (Index l = 0; l < k; ++l) sum += q[i * k + l] * r[l * n + j];
      check_near(sum, original[i * n + j], 1e-13 * static_cast<double>(m + n), "orthogonal factors");
      check(i <= j || i >= k || r[i * n + j] == 0, "the second of them is a triangle");
    }
  for (Index i = 0; i < k; ++i)
    for (Index j = 0; j < k; ++j) {
      double sum = 0;
      for (Index l = 0; l < m; ++l) sum += q[l * k + i] * q[l * k + j];
      check_near(sum, i == j, 1e-14 * static_cast<double>(m + 10), "orthonormal columns");
    }
}

void pivoted(Index n, Index rank) {
  const Numbers h = numbers(n, rank, 1.0, 5);
  Numbers a(static_cast<std::size_t>(n * n), 0.0), g(a.size());
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j)
      for (Index k = 0; k < rank; ++k) a[i * n + j] += h[i * rank + k] * h[j * rank + k];
  ThreadPool pool(1);
  Monitor monitor;
  LinAlgContext context{pool, monitor};
  const auto pivots = factorize_pivoted({a.data(), n, n, n, 1}, {g.data(), n, n, n, 1}, 1e-10, context);
  check(static_cast<Index>(pivots.size()) == std::min(rank, n), "a pivoted factor ends with the rank");
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j) {
      double sum = 0;
      for (std::size_t k = 0; k < pivots.size(); ++k) sum += g[k * n + i] * g[k * n + j];
      check_near(sum, a[i * n + j], 1e-10, "a pivoted factor");
    }
}

}  // namespace

void quasi_newton() {
  without_bounds();
  within_bounds();
  no_way_down();
  const volatile Index one = 1;  // what is known while compiling is warned of, with loops that never run in view
  orthogonal(one, one);
  orthogonal(70, 40);
  orthogonal(33, 50);
  pivoted(40, 6);
  pivoted(9, 9);
}

}  // namespace tests
