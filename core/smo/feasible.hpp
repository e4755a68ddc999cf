// The dual problem and its feasible sets. In signed duals a = y*alpha:
//
//   min  1/2 a'K a + sum ridge/power |a|^power - linear'a    s.t.  sum a = s,  lower <= a <= upper,  sum side*a <= total
//
// s is 0 but for one-class machines; for nu machines the cap is an equation: the sums of both sides are given.
// The power is 2 (a ridge on the kernel's diagonal) but for p-norms. G = linear - K a - ridge*|a|^(power-1) sign a
// is minus the gradient. `up` variables may grow (a < upper), `low` ones may shrink.
// A set is a policy: it says which pairs may move, how far, how far from optimal a point is, and how to choose
// a working set. Box: no cap. CappedBox: cap on sum side*a, where side = +-1 is the class of a variable.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "cpu/buffer.hpp"

namespace slimsvm {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Problem {
  Index size;
  const double *linear, *lower, *upper, *ridge;
  const double* side;  // +-1; read only with a cap
  double total;        // infinity: no cap
  double power = 2;
  double sum = 0;      // of the duals
  bool exact = false;  // sum side*a = total
  const double* diagonal = nullptr;  // k(x, x); read only where sums are given

  // Is zero feasible? Then so is every share of feasible duals, and the optimum is not negative.
  bool centred() const { return sum == 0 && !exact; }
  // What each side sums to, where both sums are given.
  double sum_of_side(double s) const { return 0.5 * (sum + s * total); }
  // The sum of the duals' sizes where sums are given: duals of a side have one sign then.
  double mass() const { return exact ? std::fabs(sum_of_side(1)) + std::fabs(sum_of_side(-1)) : std::fabs(sum); }

  // Where nothing but given sums makes f what it is, its terms may cancel: f = 0, and no gap is small beside the optimum.
  // Below this share of what the terms of duals make without their signs, that is what it is.
  double least_of(const double* a, const double* k) const {
    constexpr double share = 1e-10;
    if (centred() || !k) return 0.0;
    double terms = 0;
    for (Index i = 0; i < size; ++i) {
      if (linear[i] != 0) return 0.0;
      if (a[i] != 0) terms += std::fabs(a[i]) * std::sqrt(std::max(k[i], 0.0));
    }
    return share * terms * terms;
  }

  // The penalty of one variable, and its slope.
  double penalty(Index i, double x) const {
    if (power == 2) return 0.5 * ridge[i] * x * x;
    return ridge[i] / power * std::pow(std::fabs(x), power);
  }
  double slope(Index i, double x) const {
    if (power == 2) return ridge[i] * x;
    return std::copysign(ridge[i] * std::pow(std::fabs(x), power - 1), x);
  }
  // Where r x - penalty is largest between the bounds.
  double response(Index i, double r) const {
    if (!(ridge[i] > 0)) return r > 0 ? upper[i] : lower[i];
    const double x = power == 2 ? r / ridge[i] : std::copysign(std::pow(std::fabs(r) / ridge[i], 1 / (power - 1)), r);
    return std::clamp(x, lower[i], upper[i]);
  }
};

// Multipliers of the sum and of the cap. Any pair with cap >= 0 certifies a gap; any at all where both sums are given.
struct Offsets {
  double bias = 0, cap = 0;
};

struct Certificate {
  double violation = infinity, dual = 0, gap = infinity;
  double least = 0;       // an optimum of this size is zero, as far as is worth knowing
  bool any_sign = false;  // of the dual: zero is not feasible
  // In share of the optimum: nothing is proved before the dual is positive, where it will be.
  double relative() const {
    if (any_sign) return gap > 0 ? gap / std::max(std::fabs(dual), least) : 0.0;
    return dual > 0 ? gap / dual : dual == 0 && gap <= 0 ? 0.0 : infinity;
  }
};

// Largest G that may grow, smallest that may shrink.
struct Extremes {
  double up = -infinity, low = infinity;
  void add(double g, bool grows, bool shrinks) {
    if (grows && g > up) up = g;
    if (shrinks && g < low) low = g;
  }
  Extremes with(const Extremes& other) const { return {std::max(up, other.up), std::min(low, other.low)}; }
  double violation() const { return up > -infinity && low < infinity ? up - low : -infinity; }
  double middle() const {
    if (up > -infinity && low < infinity) return 0.5 * (up + low);
    return up > -infinity ? up : low < infinity ? low : 0.0;
  }
};

// sup over lower <= x <= upper of r x - penalty(x): the loss of a residual r.
inline double conjugate(const Problem& p, Index i, double r) {
  const double x = p.response(i, r);
  if (x == 0) return 0;
  if (!(p.ridge[i] > 0)) return r * x;
  if (p.power != 2 && p.lower[i] < x && x < p.upper[i]) return r * x * (1 - 1 / p.power);  // r is the penalty's slope there
  return r * x - p.penalty(i, x);
}

// No dual objective is above this, the primal at f = 0: unless the kernel is not positive semidefinite.
inline double dual_ceiling(const Problem& p) {
  double sum = 0;
  for (Index i = 0; i < p.size; ++i) sum += conjugate(p, i, p.linear[i]);
  return sum;
}

// Bounds for variables that have none. Under a cap, duals that sum to zero have half of it on each side. With a
// ridge, no optimum reaches them: there the penalty is a part of the primal, hence at most the ceiling. They only keep a
// kernel that is none from running away.
struct SafeBounds {
  std::vector<double> lower, upper;
  explicit SafeBounds(const Problem& p) : lower(p.lower, p.lower + p.size), upper(p.upper, p.upper + p.size) {
    const double ceiling = dual_ceiling(p), half = 0.5 * p.total;
    bool one_sided = half < infinity;  // side * a >= 0 throughout
    for (Index i = 0; i < p.size && one_sided; ++i) one_sided = p.side[i] > 0 ? lower[i] >= 0 : upper[i] <= 0;
    for (Index i = 0; i < p.size; ++i) {
      const double most = std::min(one_sided ? half : infinity,
                                   p.ridge[i] > 0 ? 2 * std::pow(p.power * ceiling / p.ridge[i], 1 / p.power) : infinity);
      lower[i] = std::max(lower[i], -most);
      upper[i] = std::min(upper[i], most);
    }
  }
};

// The dual objective, and primal minus dual at (f = K a, offsets): a sum of terms that are each >= 0 (Fenchel-Young).
inline void evaluate(const Problem& p, const double* a, const double* G, Offsets o, Certificate& c) {
  double gap = 0, used = 0;
  c.any_sign = !p.centred();
  c.least = p.least_of(a, p.diagonal);
  c.dual = 0;  // linear'a - 1/2 a'K a - penalty, with K a = linear - G - slope
  for (Index i = 0; i < p.size; ++i) {
    const double slope = p.slope(i, a[i]), penalty = p.power == 2 ? p.penalty(i, a[i]) : a[i] * slope / p.power;
    c.dual += 0.5 * a[i] * (p.linear[i] + G[i]);
    if (p.power != 2) c.dual += 0.5 * a[i] * slope - penalty;
    const double r = G[i] + slope - o.bias - (o.cap != 0 ? o.cap * p.side[i] : 0.0);
    gap += conjugate(p, i, r) - a[i] * r + penalty;
    if (o.cap > 0) used += p.side[i] * a[i];
  }
  c.gap = o.cap > 0 && !p.exact ? gap + o.cap * (p.total - used) : gap;
}

// Below power 2 the penalty's slope is so steep at zero that a tiny dual makes a large violation: the gap counts.
inline double telling_violation(const Problem& p, double violation, const Certificate& c) {
  violation = std::max(0.0, violation);
  return p.power < 2 ? std::min(violation, std::max(0.0, c.relative())) : violation;
}

// Rounded sums of many steps: what is left of a cap this tight counts as nothing.
inline bool cap_active(double room, double total) { return room <= 1e-12 * total; }

// A candidate for the working set, and the lists they are taken from (best first after trimming).
struct Candidate {
  double badness;
  Index variable;
};
using CandidateList = std::vector<Candidate>;

class Box {
 public:
  static constexpr int lists = 2;
  explicit Box(const Problem& p) : p_(p) {}

  Extremes extremes(const double* a, const double* G) const {
    Extremes e;
    for (Index i = 0; i < p_.size; ++i) e.add(G[i], a[i] < p_.upper[i], a[i] > p_.lower[i]);
    return e;
  }
  Offsets offsets(const double* a, const double* G) const { return {extremes(a, G).middle(), 0}; }
  Certificate certify(const double* a, const double* G) const {
    const Extremes e = extremes(a, G);
    Certificate c;
    evaluate(p_, a, G, {e.middle(), 0}, c);
    c.violation = telling_violation(p_, e.violation(), c);
    return c;
  }
  // Violators, worst first: those that should grow, those that should shrink.
  void candidates(const double* a, const double* G, const std::vector<std::int32_t>& slot, CandidateList (&out)[lists]) const {
    const Extremes e = extremes(a, G);
    for (Index i = 0; i < p_.size; ++i) {
      if (slot[i] >= 0) continue;
      if (a[i] < p_.upper[i] && G[i] > e.low) out[0].push_back({G[i], i});
      if (a[i] > p_.lower[i] && G[i] < e.up) out[1].push_back({-G[i], i});
    }
  }

 private:
  const Problem& p_;
};

// With the cap active, a variable of class + that grows and one of class - that shrinks would both add to the
// sum: that pair is illegal. Each class has its own threshold, bias + cap for +, bias - cap for -, and a
// working set needs the best of all four lists: the two lists of a plain box get stuck. Where the cap is an equation,
// only pairs within a class are legal.
class CappedBox {
 public:
  static constexpr int lists = 4;
  explicit CappedBox(const Problem& p) : p_(p) {}

  double used(const double* a) const {
    double sum = 0;
    for (Index i = 0; i < p_.size; ++i) sum += p_.side[i] * a[i];
    return sum;
  }
  bool active(double sum) const { return p_.exact || cap_active(p_.total - sum, p_.total); }

  struct ByClass {
    Extremes plus, minus;
  };
  ByClass extremes(const double* a, const double* G) const {
    ByClass e;
    for (Index i = 0; i < p_.size; ++i) (p_.side[i] > 0 ? e.plus : e.minus).add(G[i], a[i] < p_.upper[i], a[i] > p_.lower[i]);
    return e;
  }
  static double violation(const ByClass& e, bool active, bool exact) {
    if (!active) return e.plus.with(e.minus).violation();
    if (exact) return std::max(e.plus.violation(), e.minus.violation());
    return std::max({e.plus.violation(), e.minus.violation(), Extremes{e.minus.up, e.plus.low}.violation()});
  }
  // The cap's multiplier only where it is known without a search.
  Offsets offsets(const double* a, const double* G) const {
    const ByClass e = extremes(a, G);
    if (!active(used(a))) return {e.plus.with(e.minus).middle(), 0};
    return {0.5 * (e.plus.middle() + e.minus.middle()), p_.exact ? 0.5 * (e.plus.middle() - e.minus.middle()) : 0.0};
  }
  Certificate certify(const double* a, const double* G) const {
    const ByClass e = extremes(a, G);
    const bool on = active(used(a));
    Certificate c;
    Offsets o = offsets(a, G);
    if (on && !p_.exact) o.cap = best_cap(a, G, o.bias);
    evaluate(p_, a, G, o, c);
    c.violation = telling_violation(p_, violation(e, on, p_.exact), c);
    return c;
  }
  void candidates(const double* a, const double* G, const std::vector<std::int32_t>& slot, CandidateList (&out)[lists]) const {
    for (Index i = 0; i < p_.size; ++i) {
      if (slot[i] >= 0) continue;
      const int c = p_.side[i] > 0 ? 0 : 2;
      if (a[i] < p_.upper[i]) out[c].push_back({G[i], i});
      if (a[i] > p_.lower[i]) out[c + 1].push_back({-G[i], i});
    }
  }

 private:
  // The cap's multiplier that makes the gap least for this bias: the gap is convex in it.
  double best_cap(const double* a, const double* G, double bias) const {
    double high = 0;
    for (Index i = 0; i < p_.size; ++i) high = std::max(high, p_.side[i] * (G[i] + p_.slope(i, a[i]) - bias));
    double low = 0;
    for (int step = 0; step < 60 && high - low > 1e-15 * high; ++step) {
      const double cap = 0.5 * (low + high);
      double mass = 0;  // sum of side * argmax in conjugate: falls as the multiplier grows
      for (Index i = 0; i < p_.size && mass <= p_.total; ++i)
        mass += p_.side[i] * p_.response(i, G[i] + p_.slope(i, a[i]) - bias - cap * p_.side[i]);
      (mass > p_.total ? low : high) = cap;
    }
    return high;
  }

  const Problem& p_;
};

}  // namespace slimsvm
