// Newton steps on the free variables: a way out of slow blocks, and the last digits of problems of one block.
//
// SMO finds which variables are at a bound long before the others settle. With those fixed, optimality is the
// linear system  (K_FF + ridge) d + b = G_F,  sum d = 0  on the free variables F: one factorisation replaces
// thousands of pair steps, and the result no longer depends on the path that led to it.
#pragma once

#include <vector>

#include "gram.hpp"
#include "pairs.hpp"

namespace slimsvm {

// Cholesky factor of the lower triangle of m (n x n, row-major, in place). False if m is not positive definite.
struct Factorize {
  template <class Isa>
  static SLIM_INLINE bool run(double* m, int n) {
    constexpr int N = lanes<double, Isa>;
    using D = Vec<double, N>;
    for (int i = 0; i < n; ++i) {
      double* ri = m + static_cast<std::size_t>(i) * n;
      for (int j = 0; j <= i; ++j) {
        const double* rj = m + static_cast<std::size_t>(j) * n;
        D part[2] = {D{}, D{}};
        int k = 0;
        for (; k + 2 * N <= j; k += 2 * N) {
          part[0] += load<D>(ri + k) * load<D>(rj + k);
          part[1] += load<D>(ri + k + N) * load<D>(rj + k + N);
        }
        const D both = part[0] + part[1];
        double sum = 0;
#pragma GCC unroll 8
        for (int l = 0; l < N; ++l) sum += both[l];
        for (; k < j; ++k) sum += ri[k] * rj[k];
        if (j < i) {
          ri[j] = (ri[j] - sum) / rj[j];
        } else {
          const double pivot = ri[i] - sum;
          if (!(pivot > 0)) return false;
          ri[i] = std::sqrt(pivot);
        }
      }
    }
    return true;
  }
};

inline void solve_factored(const std::vector<double>& l, int n, double* x) {
  for (int i = 0; i < n; ++i) {
    const double* r = l.data() + static_cast<std::size_t>(i) * n;
    double sum = x[i];
    for (int k = 0; k < i; ++k) sum -= r[k] * x[k];
    x[i] = sum / r[i];
  }
  for (int i = n - 1; i >= 0; --i) {
    const double* r = l.data() + static_cast<std::size_t>(i) * n;
    x[i] /= r[i];
    for (int k = 0; k < i; ++k) x[k] -= r[k] * x[i];
  }
}

template <class Real>
std::vector<int> free_variables(const Block<Real>& b) {
  std::vector<int> free;
  for (int i = 0; i < b.size; ++i)
    if (b.a[i] > b.lower[i] && b.a[i] < b.upper[i]) free.push_back(i);
  return free;
}

// One Newton step on the free variables, cut at the first bound. The share of the step taken; 0: none.
//
// The first free variable takes up what the others give, so that the sum stays zero to rounding even where the
// matrix is singular: in the others the matrix is K_rc - K_r0 - K_0c + K_00, the gradient G_r - G_0.
template <class Real>
double newton_step(Block<Real>& b, const std::vector<int>& free) {
  const int n = static_cast<int>(free.size()) - 1;
  const Real* base = b.row(free[0]);
  const double corner = b.diagonal[free[0]];
  std::vector<double> m(static_cast<std::size_t>(n) * n), step(n + 1);
  double* others = step.data() + 1;
  double largest = 0;
  for (int r = 0; r < n; ++r) {
    const int i = free[r + 1];
    double* row = m.data() + static_cast<std::size_t>(r) * n;
    for (int c = 0; c <= r; ++c)
      row[c] = (static_cast<double>(b.row(i)[free[c + 1]]) - base[i]) - (base[free[c + 1]] - corner);
    largest = std::max(largest, row[r]);
    others[r] = b.G[i] - b.G[free[0]];
  }
  const double lift = sizeof(Real) == 4 ? 1e-6 : 1e-12;  // equal rows make the matrix singular, rounding worse
  for (int r = 0; r < n; ++r) m[static_cast<std::size_t>(r) * n + r] += lift * largest;
  if (!dispatch<Factorize>(m.data(), n)) return 0;
  std::vector<double> slope(others, others + n);
  solve_factored(m, n, others);
  double gain = 0;
  for (int r = 0; r < n; ++r) {
    step[0] -= others[r];
    gain += slope[r] * others[r];
  }
  if (!(gain > 0) || !std::isfinite(step[0])) return 0;

  double share = 1;
  int hit = -1;
  for (int r = 0; r <= n; ++r) {
    const int i = free[r];
    const double room = step[r] > 0 ? b.upper[i] - b.a[i] : b.lower[i] - b.a[i];
    if (step[r] != 0 && room / step[r] < share) share = room / step[r], hit = r;
  }
  std::vector<const Real*> rows(n + 1);
  std::vector<double> moved(n + 1);
  for (int r = 0; r <= n; ++r) {
    const int i = free[r];
    const double target = r == hit ? (step[r] > 0 ? b.upper[i] : b.lower[i]) : b.a[i] + share * step[r];
    rows[r] = b.row(i);
    moved[r] = target - b.a[i];
    b.a[i] = target;
    detail::set_masks(b, i);
  }
  dispatch<SubtractRows<Real>>(static_cast<const Real* const*>(rows.data()), static_cast<const double*>(moved.data()), n + 1,
                               static_cast<Index>(b.size), b.G.data());
  return std::max(share, 1e-300);
}

constexpr std::size_t most_free = 256;  // beyond, the factorisation would cost more than the solution so far

inline void polish(Block<double>& b) {
  if (b.capped()) return;
  const double scale = 1e-13 * (1 + std::fabs(*std::max_element(b.G.begin(), b.G.end())));
  for (int attempt = 0; attempt < 30; ++attempt) {
    const std::vector<int> free = free_variables(b);
    if (free.size() < 2 || free.size() > most_free) return;
    const double share = newton_step(b, free);
    if (share == 0) return;
    if (share < 1) continue;
    // Variables at a bound may want to come back: a few pair steps let them.
    const long before = b.steps;
    dispatch<SolveBlock<BoxPairs, double>>(&b, scale, 20L);
    if (b.steps == before) return;
  }
}

}  // namespace slimsvm
