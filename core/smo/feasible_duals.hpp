// Duals within bounds that have the sums that are given.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "smo/feasible.hpp"

namespace slimsvm {

// Duals of largest gain for given residuals, with the sums that are given: upper where the residual is above a threshold,
// lower where it is below. Bounds must be finite.
inline std::vector<double> feasible_duals(const Problem& p, const std::vector<double>& residuals) {
  std::vector<Index> order(p.size);
  std::iota(order.begin(), order.end(), Index(0));
  std::sort(order.begin(), order.end(), [&](Index x, Index y) {
    return residuals[x] < residuals[y] || (residuals[x] == residuals[y] && x < y);
  });
  std::vector<double> a(p.upper, p.upper + p.size);
  const auto lowered = [&](double side, double target) {  // side 0: all variables
    double excess = -target;
    for (Index v = 0; v < p.size; ++v)
      if (side == 0 || p.side[v] == side) excess += a[v];
    for (const Index v : order) {
      if (side != 0 && p.side[v] != side) continue;
      const double span = p.upper[v] - p.lower[v];
      if (excess <= span) {
        a[v] -= std::max(excess, 0.0);
        break;
      }
      a[v] = p.lower[v];
      excess -= span;
    }
  };
  if (p.exact) {
    lowered(1, p.sum_of_side(1));
    lowered(-1, p.sum_of_side(-1));
  } else {
    lowered(0, p.sum);
  }
  return a;
}

// Can bounds meet the sums that are given?
inline bool feasible_sums(const Problem& p) {
  const auto within = [&](double side, double target) {
    double least = 0, most = 0;
    for (Index v = 0; v < p.size; ++v)
      if (side == 0 || p.side[v] == side) least += p.lower[v], most += p.upper[v];
    const double rounding = 1e-12 * (most - least);
    return least - rounding <= target && target <= most + rounding;
  };
  return p.exact ? within(1, p.sum_of_side(1)) && within(-1, p.sum_of_side(-1)) : within(0, p.sum);
}

}  // namespace slimsvm
