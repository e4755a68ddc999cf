// The model that a solution makes: its exact bias, and the certificate of the whole problem.
//
// Where the cost of the slacks is a sum over rows, the feasible set is all there is to know of it: the cost of the residuals
// r = y - f - b is the largest sum r a - penalty(a) over a in the set, and the best bias makes that least. Where sums other
// than zero are given, a threshold t with the sum s adds t s to the primal, and each side may have a threshold of its own.
// Sets with a cap or a ball, and costs that a user wrote, are certified outside of the core.
#pragma once

#include <numeric>
#include <vector>

#include "smo/feasible.hpp"

namespace slimsvm {

struct PrimalCertificate {
  bool known = false;  // false: there is more to do, and where the gap is infinite the rest says nothing
  double bias = 0, cap = 0, primal = 0, dual = 0, gap = infinity;
  double rounding = 0;  // the part of the gap that it makes
};

// A sum as if all digits were kept (Neumaier).
inline double exact_sum(const std::vector<double>& x) {
  double sum = 0, rest = 0;
  for (const double value : x) {
    const double next = sum + value;
    rest += std::fabs(sum) >= std::fabs(value) ? (sum - next) + value : (value - next) + sum;
    sum = next;
  }
  return sum + rest;
}

class Certifier {
 public:
  static constexpr double negligible = 0.01;  // share of the tolerance that rounding may take

  Certifier(const Problem& p, double tolerance, double dot_product_degree)
      : p_(p), tolerance_(tolerance), degree_(std::max(1.0, dot_product_degree)) {
    squares_ = p.size > 0 && p.ridge[0] > 0;
    for (Index i = 0; i < p.size; ++i) {
      const bool finite = std::isfinite(p.lower[i]) && std::isfinite(p.upper[i]);
      const bool half_lines = (p.lower[i] == 0 || p.lower[i] == -infinity) && (p.upper[i] == 0 || p.upper[i] == infinity);
      sums_ = sums_ && (squares_ ? p.ridge[i] > 0 && half_lines : p.ridge[i] == 0 && finite);
    }
    sums_ = sums_ && p.power == 2 && (p.exact || !(p.total < infinity)) && (!p.centred() || p.size > 1);
  }

  // Of duals a and f = K a in double, where `diagonal` are the values k(x, x). Not known where it is above the tolerance,
  // where rounding is a part of it that tells, and where sums of duals have drifted: then there is more to do.
  PrimalCertificate operator()(const std::vector<double>& a, const std::vector<double>& f, const std::vector<double>& diagonal,
                     bool compensated = false) const {
    // Three standard deviations of what the terms of a sum are rounded by.
    constexpr double roundoff = 1.5 * std::numeric_limits<double>::epsilon(), drift = 1e-12;
    PrimalCertificate v;
    if (!sums_) return v;
    const Index n = p_.size;
    std::vector<double> r(n);
    for (Index i = 0; i < n; ++i) r[i] = p_.linear[i] - f[i];
    if (p_.exact) {
      const double plus = bias_of_sizes(r, 1, p_.sum_of_side(1)), minus = bias_of_sizes(r, -1, p_.sum_of_side(-1));
      v.bias = 0.5 * (plus + minus), v.cap = 0.5 * (plus - minus);
    } else {
      v.bias = squares_ ? bias_of_squares(r) : bias_of_sizes(r, 0, p_.sum);
    }
    const auto residual = [&](Index i) { return r[i] - v.bias - (v.cap != 0 ? v.cap * p_.side[i] : 0.0); };
    double norm = 0, ridges = 0, gain = 0, sizes = 0, largest = 0, terms = 0, partial = 0, partials = 0, share = 1, targets = 0;
    for (Index i = 0; i < n; ++i) {
      targets = std::max(targets, std::fabs(p_.linear[i]));
      norm += a[i] * f[i];
      ridges += p_.ridge[i] * a[i] * a[i];
      gain += p_.linear[i] * a[i];
      sizes += std::fabs(a[i]);
      const double k = std::max(diagonal[i], 0.0), bound = a[i] > 0 ? p_.upper[i] : -p_.lower[i];
      largest = std::max(largest, k);
      terms += k * a[i] * a[i];
      partial += std::sqrt(k) * a[i];
      partials += partial * partial;
      if (a[i] != 0) share = std::min(share, bound / std::fabs(a[i]));
    }
    share = std::max(share, 0.0);
    double cost = 0;
    for (Index i = 0; i < n; ++i) cost += conjugate(p_, i, residual(i));
    v.primal = 0.5 * norm + cost + v.bias * p_.sum + (p_.exact ? v.cap * p_.total : 0.0);
    // What is left of the sums costs at most the best thresholds, which are no larger than a residual.
    const double sum = drifted(a), values = p_.centred() ? std::sqrt(largest * 2 * std::max(v.primal, 0.0)) : largest * p_.mass();
    v.dual = share * (gain - sum * (targets + values)) - 0.5 * share * share * (norm + ridges);
    if (v.primal == 0 && v.dual == 0 && share == 1 && sum <= drift * sizes) {  // such as targets within their tube, or rows of zeros
      v.gap = 0;
      v.known = true;
      return v;
    }
    const double least = p_.least_of(a.data(), diagonal.data()), size = std::max(std::fabs(v.dual), least);
    const bool proves = p_.centred() ? v.dual > 0 : share == 1 && size > 0;
    if (!proves || sum > drift * sizes) return v;
    // Errors of f cost what the duals say, which adds up like chance, and more at the corners of the cost.
    // A kernel value is rounded by up to eps times the degree, a partial sum by up to half of eps.
    const double summed = degree_ * degree_ * terms + (compensated ? 0 : partials / 3);
    double worse = 0, charges = 0, squares = 0;
    for (Index i = 0; i < n; ++i) {
      const double rounded = std::fabs(p_.linear[i]) + std::fabs(f[i]) + std::fabs(v.bias) + std::fabs(v.cap);
      const double error = roundoff * (std::sqrt(std::max(diagonal[i], 0.0) * summed) + rounded);
      const double x = residual(i), outward = p_.lower[i] == 0 ? error : p_.upper[i] == 0 ? -error : std::copysign(error, x);
      worse += conjugate(p_, i, x + outward);
      charges += std::fabs(a[i]) * error;
      squares += a[i] * a[i] * error * error;
    }
    const double blur = std::max(worse - cost - charges, 0.0) + 2 * std::sqrt(squares);
    v.gap = std::max(v.primal + blur - v.dual, 0.0) / size;
    v.rounding = blur / size;
    v.known = v.gap <= tolerance_ && v.rounding <= negligible * tolerance_;
    return v;
  }

 private:
  // By how much sums of duals miss those that are given.
  double drifted(const std::vector<double>& a) const {
    if (!p_.exact) {
      if (p_.sum == 0) return std::fabs(exact_sum(a));
      std::vector<double> all(a);
      all.push_back(-p_.sum);
      return std::fabs(exact_sum(all));
    }
    double missed = 0;
    for (const double side : {1.0, -1.0}) {
      std::vector<double> mine{-p_.sum_of_side(side)};
      for (Index i = 0; i < p_.size; ++i)
        if (p_.side[i] == side) mine.push_back(a[i]);
      missed += std::fabs(exact_sum(mine));
    }
    return missed;
  }

  // The variables of a side (0: all) in the order of their residuals.
  std::vector<Index> sorted(const std::vector<double>& r, double side = 0) const {
    std::vector<Index> order;
    order.reserve(r.size());
    for (Index i = 0; i < p_.size; ++i)
      if (side == 0 || p_.side[i] == side) order.push_back(i);
    std::sort(order.begin(), order.end(), [&](Index x, Index y) { return r[x] < r[y] || (r[x] == r[y] && x < y); });
    return order;
  }

  // A residual at b or below wants its lower bound, one above it the upper: b is where these have the sum that is given, the
  // middle of the interval if there is one. Sums of equal bounds meet the target exactly but for rounding.
  double bias_of_sizes(const std::vector<double>& r, double side, double sum) const {
    const std::vector<Index> order = sorted(r, side);
    double target = -sum, mass = 0;
    for (const Index i : order) target += p_.upper[i];
    for (std::size_t k = 0; k < order.size(); ++k) {
      mass += p_.upper[order[k]] - p_.lower[order[k]];
      if (mass < target * (1 - 1e-12)) continue;
      if (k + 1 < order.size() && mass <= target * (1 + 1e-12)) return 0.5 * (r[order[k]] + r[order[k + 1]]);
      return r[order[k]];
    }
    return r[order.back()];
  }

  // The mean residual of the rows in error: above b those that may grow, below it those that may shrink.
  double bias_of_squares(const std::vector<double>& r) const {
    const std::vector<Index> order = sorted(r);
    const std::size_t n = order.size();
    double highest = -infinity, lowest = infinity;
    std::vector<double> above(n + 1, 0.0), above_moment(n + 1, 0.0);
    for (std::size_t k = n; k-- > 0;) {
      const Index i = order[k];
      const double w = p_.upper[i] > 0 ? 1 / p_.ridge[i] : 0.0;
      above[k] = above[k + 1] + w;
      above_moment[k] = above_moment[k + 1] + w * r[i];
      if (p_.upper[i] > 0) highest = std::max(highest, r[i]);
      if (p_.lower[i] < 0) lowest = std::min(lowest, r[i]);
    }
    if (highest <= lowest) return 0.5 * (highest + lowest);  // no row is in error anywhere between
    // The slope of the cost falls from above 0 to below along the residuals; between two the rows in error stay the same.
    double below = 0, below_moment = 0, bias = 0;
    for (std::size_t k = 0; k + 1 < n; ++k) {
      const Index i = order[k];
      const double w = p_.lower[i] < 0 ? 1 / p_.ridge[i] : 0.0;
      below += w;
      below_moment += w * r[i];
      const double slope = (above_moment[k] - r[i] * above[k]) - (r[i] * below - below_moment);
      if (k > 0 && slope < 0) break;
      bias = (above_moment[k + 1] + below_moment) / (above[k + 1] + below);
    }
    return bias;
  }

  const Problem& p_;
  double tolerance_, degree_;
  bool sums_ = true, squares_ = false;
};

}  // namespace slimsvm
