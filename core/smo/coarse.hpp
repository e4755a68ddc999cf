// A start from a coarse problem: solve for every eighth point, each standing for eight, and let its decision
// values say where the others belong.
//
// It pays where classes overlap. There most vectors end at their bound, thousands of them, and one product
// puts them there instead of hundreds of rounds. Where most vectors are free the guess is poor, and is not used.
#pragma once

#include <memory>
#include <vector>

#include "matrix/kernel_matrices.hpp"
#include "smo/block_smo.hpp"
#include "smo/feasible_duals.hpp"

namespace slimsvm {

constexpr Index coarse_from = 4096;  // variables below which a cold start is as fast
constexpr int coarse_step = 8;
constexpr double mostly = 0.5;  // share of vectors at a bound from which the guess is good

// Replaces the iterate (all zero) by the guess; false: no guess was worth it.
template <class Set>
bool coarse_start(KernelMatrices& matrices, const std::vector<int>& segments, const Problem& p, const Options& options, Iterate& it,
                  SolverMonitor& monitor) {
  if (p.size < coarse_from || options.max_steps >= 0) return false;  // a limit is for the problem itself
  if (p.total < infinity && !p.exact) return false;
  for (Index v = 0; v < p.size; ++v)
    if (p.ridge[v] > 0 || !std::isfinite(p.lower[v]) || !std::isfinite(p.upper[v])) return false;
  const View view = matrices.in_float().view(segments);
  std::vector<Index> variables, positions;
  for (Index v = 0; v < view.rows(); v += coarse_step) {
    variables.push_back(v);
    positions.push_back(view.position(v));
  }
  const auto kernel = matrices.subset(positions);
  if (!kernel) return false;
  if (view.twice)
    for (std::size_t i = 0; i < positions.size(); ++i) variables.push_back(view.rows() + variables[i]);

  const std::size_t n = variables.size();
  std::vector<double> linear(n), lower(n), upper(n), ridge(n, 0.0), diagonal(n), side(n, 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    linear[i] = p.linear[variables[i]];
    lower[i] = coarse_step * p.lower[variables[i]];
    upper[i] = coarse_step * p.upper[variables[i]];
    diagonal[i] = kernel->diagonal()[i % positions.size()];
    if (p.exact) side[i] = p.side[variables[i]];
  }
  const Problem small{static_cast<Index>(n), linear.data(), lower.data(), upper.data(), ridge.data(), side.data(), p.total, 2, p.sum, p.exact,
                      diagonal.data()};
  if (!feasible_sums(small)) return false;
  Iterate coarse;
  coarse.a.assign(n, 0.0);
  coarse.G = linear;
  const Set set(small);
  const View small_view = kernel->view(view.twice ? std::vector<int>{0, 0} : std::vector<int>{0});
  if (!p.centred()) {
    coarse.a = feasible_duals(small, linear);
    kernel->subtract_product(small_view, coarse.a.data(), coarse.G.data(), monitor);
  }
  BlockSmo<float, Set>(*kernel, small_view, small, set, diagonal, options, coarse, monitor).run(0.1, 0.1);

  std::size_t vectors = 0, bound = 0;
  for (std::size_t i = 0; i < n; ++i)
    if (coarse.a[i] != 0) ++vectors, bound += coarse.a[i] == lower[i] || coarse.a[i] == upper[i];
  if (static_cast<double>(bound) < mostly * static_cast<double>(vectors)) return false;

  std::vector<double> spread(p.size, 0.0), residuals(p.linear, p.linear + p.size);
  for (std::size_t i = 0; i < n; ++i) spread[variables[i]] = coarse.a[i];
  matrices.in_float().subtract_product(view, spread.data(), residuals.data(), monitor);
  it.a = feasible_duals(p, residuals);
  matrices.in_float().subtract_product(view, it.a.data(), it.G.data(), monitor, &it.error);
  it.steps = coarse.steps;
  return true;
}

}  // namespace slimsvm
