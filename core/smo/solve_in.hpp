// One dual problem from start to certificate: a start, rounds in the cheaper precision, and a gradient computed
// afresh in double that decides.
#pragma once

#include <stdexcept>
#include <vector>

#include "smo/block_smo.hpp"
#include "smo/coarse.hpp"
#include "smo/solver.hpp"

namespace slimsvm {

// Puts the sums back where they belong after many rounded steps, on the variable with the most room. Returns by how much.
inline double balance(const Problem& p, std::vector<double>& a) {
  double moved = 0;
  const auto correct = [&](double side, double target) {  // side 0: all variables
    double sum = 0, most = 0;
    Index at = -1;
    for (Index i = 0; i < p.size; ++i) {
      if (side != 0 && p.side[i] != side) continue;
      sum += a[i];
      const double room = std::min(p.upper[i] - a[i], a[i] - p.lower[i]);
      if (room > most) most = room, at = i;
    }
    if (at < 0 || !(std::fabs(sum - target) < most)) return;
    a[at] -= sum - target;
    moved += std::fabs(sum - target);
  };
  if (p.total < infinity) {
    double used = 0;
    for (Index i = 0; i < p.size; ++i) used += p.side[i] * a[i];
    if (p.exact || used >= p.total * (1 - 1e-9)) {
      correct(1, p.sum_of_side(1));
      correct(-1, p.sum_of_side(-1));
      return moved;
    }
  }
  correct(0, p.sum);
  return moved;
}

// In regression a row has two duals, one of at least 0 and one of at most 0, and f depends on their sum. Moves both towards 0
// as far as one of them goes, unless that lowers the dual: large duals of opposite signs would add rounding errors to f.
inline void cancel_opposite(const Problem& p, std::vector<double>& a) {
  for (Index v = 0, w = p.size / 2; w < p.size; ++v, ++w) {
    const double both = std::min(a[v], -a[w]);
    if (both <= 0 || p.linear[v] > p.linear[w]) continue;
    a[v] -= both;
    a[w] += both;
  }
}

template <class Set>
Solution solve_in(KernelMatrices& matrices, const std::vector<int>& segments, Problem p, const Options& options, bool use_double,
                  WarmStart start, SolverMonitor& monitor) {
  const Set set(p);
  Solution solution;
  Iterate it;
  it.a.assign(p.size, 0.0);
  if (start.duals) std::copy(start.duals, start.duals + p.size, it.a.begin());
  it.G.assign(p.linear, p.linear + p.size);
  KernelMatrix<double>& exact = matrices.in_double();
  if (p.size <= double_below) exact.prefetch(double_below, monitor);
  const View full_view = exact.view(segments);
  if (full_view.size() != p.size) throw std::invalid_argument("the problem's size differs from the view's");
  std::vector<double> product(p.size, 0.0), diagonal(p.size);
  for (Index v = 0; v < p.size; ++v) diagonal[v] = exact.diagonal()[full_view.position(v)];
  p.diagonal = diagonal.data();
  double largest = 1;  // of all kernel values
  for (const double k : diagonal) largest = std::max(largest, k);
  std::vector<Index> far;  // variables whose product was not computed afresh
  const auto evaluate = [&] {  // K a afresh, in double
    std::fill(product.begin(), product.end(), 0.0);
    exact.subtract_product(full_view, it.a.data(), product.data(), monitor);
    for (double& f : product) f = -f;
    it.error.reset(it.a);
    far.clear();
  };
  // The same where it can matter. A point whose dual is zero and that is clear of its margin by more than the error of
  // its value adds nothing to the gap, and the value stands. Some room is left, so that a bias near this one sees no
  // difference.
  const auto evaluate_where_it_matters = [&] {
    constexpr double room = 0.02;
    if (!it.error.known()) return evaluate();
    const Offsets o = set.offsets(it.a.data(), it.G.data());
    std::vector<char> matters(p.size);
    for (Index v = 0; v < p.size; ++v) {
      const double r = it.G[v] + p.slope(v, it.a[v]) - o.bias - (o.cap != 0 ? o.cap * p.side[v] : 0.0), error = it.error.at(v), clear = error + std::max(error, room);
      matters[v] = it.a[v] != 0 || conjugate(p, v, r - clear) != 0 || conjugate(p, v, r + clear) != 0;
    }
    if (full_view.twice)  // what one needs is the value of both
      for (Index v = 0, w = p.size / 2; w < p.size; ++v, ++w) matters[v] = matters[w] = matters[v] || matters[w];
    std::vector<Index> near;
    far.clear();
    for (Index v = 0; v < p.size; ++v)
      if (matters[v])
        near.push_back(v);
      else
        far.push_back(v);
    if (near.size() > 0.8 * static_cast<double>(p.size)) return evaluate();
    product.assign(p.size, 0.0);
    if (!exact.subtract_product_at(full_view, it.a.data(), near, product.data(), monitor)) return evaluate();
    for (const Index v : near) product[v] = -product[v];
    for (const Index v : far) product[v] = p.linear[v] - it.G[v];
  };
  // Such a value is given to others moved by that error to its worse side: then no bias makes the primal less than it is.
  const auto cautious_product = [&] {
    for (const Index v : far) product[v] -= std::copysign(it.error.at(v), p.upper[v] > 0 ? 1.0 : -1.0);
    return std::move(product);
  };
  const auto gradient_from = [&](const double* known) {
    for (Index v = 0; v < p.size; ++v) it.G[v] = p.linear[v] - known[v] - p.slope(v, it.a[v]);
  };
  const auto refresh = [&](const auto& product_of) {  // the gradient from scratch
    if (full_view.twice && !p.exact) cancel_opposite(p, it.a);
    it.error.uniform += balance(p, it.a) * largest;
    product_of();
    gradient_from(product.data());
    return set.certify(it.a.data(), it.G.data());
  };
  const bool coarse = !use_double && p.size > double_below && !start.duals;
  if (start.product) {
    gradient_from(start.product);
    it.error.forget();  // it may have come from anywhere
  } else if (start.duals) {
    refresh(evaluate);
  } else if (!p.centred() && !coarse) {
    it.a = feasible_duals(p, it.G);
    refresh(evaluate);
  }
  if (!options.exact) it.error.forget();  // no certificate will be asked for

  // Rows in the given precision until a certificate in double agrees; false: this precision gets no further.
  const auto rounds = [&](auto& kernel) {
    const Index before = kernel.computed();
    using Real = typename std::decay_t<decltype(kernel)>::Value;
    const View other = std::is_same_v<Real, double> ? View() : kernel.view(segments);
    const View& view = std::is_same_v<Real, double> ? full_view : other;
    BlockSmo<Real, Set> smo(kernel, view, p, set, diagonal, options, it, monitor);
    double violation_target = options.tolerance, last = infinity;
    for (int stalled = 0; stalled < 3;) {
      const bool claimed = smo.run(violation_target, options.tolerance);
      solution.rows = kernel.computed() - before;
      if (claimed && !options.exact) {
        for (Index v = 0; v < p.size; ++v) product[v] = p.linear[v] - it.G[v] - p.slope(v, it.a[v]);
        far.clear();
        solution.certificate = set.certify(it.a.data(), it.G.data());
        return true;
      }
      // The whole matrix in double at hand, or rows computed once more.
      if (sizeof(Real) == sizeof(double) && smo.has_matrix())
        solution.certificate = refresh([&] { smo.product(product), far.clear(); });
      else if (claimed)
        solution.certificate = refresh(evaluate_where_it_matters);
      else
        solution.certificate = refresh(evaluate);
      const double gap = solution.certificate.relative();
      if (gap <= options.tolerance && solution.certificate.violation <= 2 * options.tolerance) return true;
      if (options.max_steps >= 0 && it.steps >= options.max_steps) return true;
      if (it.negative_curvature && !claimed) return true;  // more digits would not help
      if (gap > 0.5 * last || !claimed) ++stalled;
      last = std::min(last, gap);
      // The violation is met but the gap is not: ask for less.
      if (solution.certificate.violation <= violation_target) violation_target = 0.1 * solution.certificate.violation;
    }
    return false;
  };
  bool done = false;
  if (!use_double && p.size > double_below) {
    if (coarse && !coarse_start<Set>(matrices, segments, p, options, it, monitor) && !p.centred()) {
      it.a = feasible_duals(p, it.G);
      KernelMatrix<float>& single = matrices.in_float();
      single.subtract_product(single.view(segments), it.a.data(), it.G.data(), monitor, &it.error);
    }
    done = rounds(matrices.in_float());
    if (!done) matrices.release_float();
    if (!done && p.centred() && !(solution.certificate.dual > 0)) {  // float led nowhere
      std::fill(it.a.begin(), it.a.end(), 0.0);
      it.G.assign(p.linear, p.linear + p.size);
      it.error.reset(it.a);
    } else if (!done) {
      it.error.forget();  // the rows to come are not those of before
    }
  }
  if (!done) {
    solution.used_double = true;
    rounds(exact);
  }
  solution.converged = solution.certificate.relative() <= options.tolerance;
  solution.a = std::move(it.a);
  solution.product = cautious_product();
  solution.diagonal = std::move(diagonal);
  solution.steps = it.steps;
  solution.rounds = it.rounds;
  solution.negative_curvature = it.negative_curvature;
  return solution;
}

}  // namespace slimsvm
