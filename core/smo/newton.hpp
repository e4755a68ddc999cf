// Newton steps on the free variables: a way out of slow blocks, and the last digits of problems of one block.
//
// SMO finds which variables are at a bound long before the others settle. With those fixed, optimality is the
// linear system  (K_FF + ridge) d + b = G_F,  sum d = 0  on the free variables F: one factorisation replaces
// thousands of pair steps, and the result no longer depends on the path that led to it.
#pragma once

#include <vector>

#include "linalg/cholesky.hpp"
#include "linalg/row_sums.hpp"
#include "smo/pair_steps.hpp"

namespace slimsvm {

template <class Real>
std::vector<int> free_variables(const Block<Real>& b) {
  std::vector<int> free;
  for (int i = 0; i < b.size; ++i)
    if (b.a[i] > b.lower[i] && b.a[i] < b.upper[i]) free.push_back(i);
  return free;
}

// The variables that a Newton step moves, and the one that takes up what the others give. Within a group sums stay:
// one group, or one for each class where the cap is active.
struct NewtonVariables {
  std::vector<int> variables, base;  // base: of each variable's group, never among the variables
  std::vector<int> bases;
};

template <class Real>
NewtonVariables movable(const Block<Real>& b, const std::vector<int>& free) {
  const bool by_class = b.capped() && b.cap_active();
  int base[2] = {-1, -1};
  NewtonVariables m;
  for (const int i : free) {
    const int group = by_class && b.side[i] < 0 ? 1 : 0;
    if (base[group] < 0) {
      base[group] = i;
      m.bases.push_back(i);
    } else {
      m.variables.push_back(i);
      m.base.push_back(base[group]);
    }
  }
  return m;
}

// The penalty's curvature for a Newton step, where its power is not 2: between the dual and the one that would answer
// its residual, as if it were alone. The tangent's curvature can be zero or infinite far from the solution.
template <class Real>
std::vector<double> secant_curvatures(const Block<Real>& b, const std::vector<int>& free) {
  std::vector<double> curvature(b.size, 0.0);
  double most = -infinity, least = infinity;
  for (const int i : free) most = std::max(most, b.G[i]), least = std::min(least, b.G[i]);
  const double middle = 0.5 * (most + least);
  for (const int i : free) {
    const double here = b.slope[i], r = b.G[i] - middle + here;
    const double answer = std::clamp(std::copysign(std::pow(std::fabs(r) / b.ridge[i], 1 / (b.power - 1)), r), b.lower[i], b.upper[i]);
    const double way = answer - b.a[i];
    if (std::fabs(way) > 1e-7 * std::fabs(answer))
      curvature[i] = std::min((detail::slope(b, i, answer) - here) / way, 1e30);
    else
      curvature[i] = detail::curvature_of_penalty(b, i);
  }
  return curvature;
}

// How far along the step the objective rises: all of it for a square, as far as the slope is positive otherwise.
template <class Real>
double rising_share(const Block<Real>& b, const std::vector<int>& moved, const std::vector<double>& step,
                    const std::vector<double>& image, double most) {
  if (b.power == 2) return most;
  double gain = 0, curvature = 0;
  for (std::size_t r = 0; r < moved.size(); ++r) gain += step[r] * b.G[moved[r]], curvature -= step[r] * image[moved[r]];
  const auto left = [&](double t) {
    double sum = gain - t * curvature;
    for (std::size_t r = 0; r < moved.size(); ++r) {
      const int i = moved[r];
      sum -= step[r] * (detail::slope(b, i, b.a[i] + t * step[r]) - b.slope[i]);
    }
    return sum;
  };
  if (left(most) >= 0) return most;
  double low = 0, high = most;
  for (int k = 0; k < 40; ++k) {
    const double t = 0.5 * (low + high);
    (left(t) > 0 ? low : high) = t;
  }
  return low;
}

// One Newton step on the free variables, cut at the first bound. The share of the step taken; 0: none.
//
// The bases take up what the others give, so that sums stay to rounding even where the matrix is singular: in the
// others the matrix is K_rc - K_rb(c) - K_b(r)c + K_b(r)b(c), the gradient G_r - G_b(r).
template <class Real>
double newton_step(Block<Real>& b, const std::vector<int>& free) {
  const NewtonVariables m = movable(b, free);
  const int n = static_cast<int>(m.variables.size());
  if (n == 0) return 0;
  const std::vector<double> penalty = b.power == 2 ? std::vector<double>(b.size, 0.0) : secant_curvatures(b, free);
  const auto corner = [&](int i) { return static_cast<double>(b.row(i)[i]) + penalty[i]; };
  std::vector<double> matrix(static_cast<std::size_t>(n) * n), others(n);
  double largest = 0;
  for (int r = 0; r < n; ++r) {
    const int i = m.variables[r], at = m.base[r];
    double* row = matrix.data() + static_cast<std::size_t>(r) * n;
    const Real *own = b.row(i), *base = b.row(at);
    for (int c = 0; c < r; ++c) {
      const int j = m.variables[c], to = m.base[c];
      row[c] = (static_cast<double>(own[j]) - base[j]) - (static_cast<double>(own[to]) - (at == to ? corner(at) : base[to]));
    }
    row[r] = corner(i) - 2 * static_cast<double>(own[at]) + corner(at);
    largest = std::max(largest, row[r]);
    others[r] = b.G[i] - b.G[at];
  }
  const double lift = sizeof(Real) == 4 ? 1e-6 : 1e-12;  // equal rows make the matrix singular, rounding worse
  for (int r = 0; r < n; ++r) matrix[static_cast<std::size_t>(r) * n + r] += lift * largest;
  if (!dispatch<CholeskyFactor>(matrix.data(), n)) return 0;
  const std::vector<double> slope = others;
  solve_factored(matrix, n, others.data());

  std::vector<int> moved = m.bases;
  std::vector<double> step(m.bases.size(), 0.0);
  double gain = 0;
  for (int r = 0; r < n; ++r) {
    const auto base = std::find(m.bases.begin(), m.bases.end(), m.base[r]) - m.bases.begin();
    step[base] -= others[r];
    gain += slope[r] * others[r];
  }
  moved.insert(moved.end(), m.variables.begin(), m.variables.end());
  step.insert(step.end(), others.begin(), others.end());
  for (const double s : step)
    if (!std::isfinite(s)) return 0;
  if (!(gain > 0)) return 0;

  double share = 1, growth = 0;
  int hit = -1;
  for (std::size_t r = 0; r < moved.size(); ++r) {
    const int i = moved[r];
    const double room = step[r] > 0 ? b.upper[i] - b.a[i] : b.lower[i] - b.a[i];
    if (step[r] != 0 && room / step[r] < share) share = room / step[r], hit = static_cast<int>(r);
    if (b.capped() && !b.cap_active()) growth += b.side[i] * step[r];
  }
  // With an active cap both sums stay; below it, the step must end there.
  if (growth * share > b.room) share = b.room / growth, hit = -1;
  std::vector<const Real*> rows;
  for (const int i : moved) rows.push_back(b.row(i));
  std::vector<double> image(b.size, 0.0);  // - K step
  dispatch<SubtractRows<Real>>(static_cast<const Real* const*>(rows.data()), static_cast<const double*>(step.data()),
                               static_cast<int>(moved.size()), static_cast<Index>(b.size), image.data());
  const double rising = rising_share(b, moved, step, image, share);
  if (rising < share) share = rising, hit = -1;
  for (int k = 0; k < b.size; ++k) b.G[k] += share * image[k];
  for (std::size_t r = 0; r < moved.size(); ++r) {
    const int i = moved[r];
    const double old = b.a[i];
    b.a[i] = static_cast<int>(r) == hit ? (step[r] > 0 ? b.upper[i] : b.lower[i]) : old + share * step[r];
    detail::set_masks(b, i);
    if (b.power == 2) continue;
    b.G[i] += b.slope[i];
    b.slope[i] = detail::slope(b, i, b.a[i]);
    b.G[i] -= b.slope[i];
    b.diagonal[i] = static_cast<Real>(b.row(i)[i] + detail::curvature_of_penalty(b, i));
  }
  b.room = std::max(0.0, b.room - growth * share);
  return std::max(share, 1e-300);
}

// Free variables beyond which the factorisation would cost more than the solution so far.
template <class Real>
std::size_t most_free(const Block<Real>& b) {
  return b.power == 2 ? 256 : 768;
}

// Newton steps from bound to bound, a few pair steps where one ends free: variables at a bound may want to come back.
// True if the violation was brought to eps or nothing moves any more.
template <class Real>
bool active_set(Block<Real>& b, double eps, int attempts) {
  double work = 0;  // cubes of sizes: a second or so
  for (int attempt = 0; attempt < attempts && work < 3e9; ++attempt) {
    const std::vector<int> free = free_variables(b);
    work += std::pow(static_cast<double>(free.size()), 3);
    if (free.size() >= 2) {
      const double share = newton_step(b, free);
      if (share == 0) return false;
      if (share < 1) continue;
    }
    const Index before = b.steps;
    if (pair_steps(b, eps, 20) <= eps || b.steps == before) return true;
  }
  return false;
}

// The last digits.
inline void polish(Block<double>& b) {
  if (free_variables(b).size() > most_free(b)) return;
  active_set(b, 1e-13 * (1 + std::fabs(*std::max_element(b.G.begin(), b.G.end()))), 30);
}

}  // namespace slimsvm
