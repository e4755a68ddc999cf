// The dual problem and its feasible sets. In signed duals a = y*alpha:
//
//   min  1/2 a'(K + diag ridge) a - linear'a    s.t.  sum a = 0,  lower <= a <= upper,  sum side*a <= total
//
// G = linear - K a - ridge*a is minus the gradient. `up` variables may grow (a < upper), `low` ones may shrink.
// A set is a policy: it says which pairs may move, how far, how far from optimal a point is, and how to choose
// a working set. Box: no cap. CappedBox: cap on sum side*a, where side = +-1 is the class of a variable.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "rows.hpp"

namespace slimsvm {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Problem {
  Index size;
  const double *linear, *lower, *upper, *ridge;
  const double* side;  // +-1; read only with a cap
  double total;        // infinity: no cap
};

// Multipliers of sum a = 0 and of the cap. Any pair with cap >= 0 certifies a gap.
struct Offsets {
  double bias = 0, cap = 0;
};

struct Certificate {
  double violation = infinity, dual = 0, gap = infinity;
  double relative() const { return dual > 0 ? gap / dual : infinity; }  // nothing is proved before the dual is positive
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

// sup over lower <= x <= upper of r x - ridge/2 x^2: the loss of a residual r.
inline double conjugate(const Problem& p, Index i, double r) {
  double x = r > 0 ? p.upper[i] : p.lower[i];
  if (p.ridge[i] > 0) x = std::clamp(r / p.ridge[i], p.lower[i], p.upper[i]);
  if (x == 0) return 0;
  return p.ridge[i] > 0 ? r * x - 0.5 * p.ridge[i] * x * x : r * x;
}

// No dual objective is above this, the primal at f = 0: unless the kernel is not positive semidefinite.
inline double dual_ceiling(const Problem& p) {
  double sum = 0;
  for (Index i = 0; i < p.size; ++i) sum += conjugate(p, i, p.linear[i]);
  return sum;
}

// Bounds for variables that have none but a ridge. No optimum reaches them: there ridge/2 a^2 is a part of the
// primal, hence at most the ceiling. They only keep a kernel that is none from running away.
struct SafeBounds {
  std::vector<double> lower, upper;
  explicit SafeBounds(const Problem& p) : lower(p.lower, p.lower + p.size), upper(p.upper, p.upper + p.size) {
    const double ceiling = dual_ceiling(p);
    for (Index i = 0; i < p.size; ++i) {
      if (!(p.ridge[i] > 0)) continue;
      const double most = 2 * std::sqrt(2 * ceiling / p.ridge[i]);
      lower[i] = std::max(lower[i], -most);
      upper[i] = std::min(upper[i], most);
    }
  }
};

inline double dual_objective(const Problem& p, const double* a, const double* G) {
  double sum = 0;  // linear'a - 1/2 a'(K + ridge)a, with (K + ridge) a = linear - G
  for (Index i = 0; i < p.size; ++i) sum += 0.5 * a[i] * (p.linear[i] + G[i]);
  return sum;
}

// Primal minus dual at (f = K a, offsets): a sum of terms that are each >= 0 (Fenchel-Young).
inline double duality_gap(const Problem& p, const double* a, const double* G, Offsets o) {
  double gap = 0, used = 0;
  for (Index i = 0; i < p.size; ++i) {
    const double r = G[i] + p.ridge[i] * a[i] - o.bias - (o.cap > 0 ? o.cap * p.side[i] : 0.0);
    gap += conjugate(p, i, r) - a[i] * r + 0.5 * p.ridge[i] * a[i] * a[i];
    if (o.cap > 0) used += p.side[i] * a[i];
  }
  return o.cap > 0 ? gap + o.cap * (p.total - used) : gap;
}

// Rounded sums of many steps: what is left of a cap this tight counts as nothing.
inline bool cap_active(double room, double total) { return room <= 1e-12 * total; }

// A candidate for the working set, and the lists they are taken from (best first after trimming).
struct Candidate {
  double badness;
  std::int32_t variable;
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
  double bias(const double* a, const double* G) const { return extremes(a, G).middle(); }
  Certificate certify(const double* a, const double* G) const {
    const Extremes e = extremes(a, G);
    Certificate c;
    c.violation = std::max(0.0, e.violation());
    c.dual = dual_objective(p_, a, G);
    c.gap = duality_gap(p_, a, G, {e.middle(), 0});
    return c;
  }
  // Violators, worst first: those that should grow, those that should shrink.
  void candidates(const double* a, const double* G, const std::vector<std::int32_t>& slot, CandidateList (&out)[lists]) const {
    const Extremes e = extremes(a, G);
    for (Index i = 0; i < p_.size; ++i) {
      if (slot[i] >= 0) continue;
      const auto v = static_cast<std::int32_t>(i);
      if (a[i] < p_.upper[i] && G[i] > e.low) out[0].push_back({G[i], v});
      if (a[i] > p_.lower[i] && G[i] < e.up) out[1].push_back({-G[i], v});
    }
  }

 private:
  const Problem& p_;
};

// With the cap active, a variable of class + that grows and one of class - that shrinks would both add to the
// sum: that pair is illegal. Each class has its own threshold, bias + cap for +, bias - cap for -, and a
// working set needs the best of all four lists: the two lists of a plain box get stuck.
class CappedBox {
 public:
  static constexpr int lists = 4;
  explicit CappedBox(const Problem& p) : p_(p) {}

  double used(const double* a) const {
    double sum = 0;
    for (Index i = 0; i < p_.size; ++i) sum += p_.side[i] * a[i];
    return sum;
  }
  bool active(double sum) const { return cap_active(p_.total - sum, p_.total); }

  struct ByClass {
    Extremes plus, minus;
  };
  ByClass extremes(const double* a, const double* G) const {
    ByClass e;
    for (Index i = 0; i < p_.size; ++i) (p_.side[i] > 0 ? e.plus : e.minus).add(G[i], a[i] < p_.upper[i], a[i] > p_.lower[i]);
    return e;
  }
  static double violation(const ByClass& e, bool active) {
    if (!active) return e.plus.with(e.minus).violation();
    return std::max({e.plus.violation(), e.minus.violation(), Extremes{e.minus.up, e.plus.low}.violation()});
  }
  double bias(const double* a, const double* G) const {
    const ByClass e = extremes(a, G);
    return active(used(a)) ? 0.5 * (e.plus.middle() + e.minus.middle()) : e.plus.with(e.minus).middle();
  }
  Certificate certify(const double* a, const double* G) const {
    const ByClass e = extremes(a, G);
    const bool on = active(used(a));
    Certificate c;
    c.violation = std::max(0.0, violation(e, on));
    c.dual = dual_objective(p_, a, G);
    if (!on) {
      c.gap = duality_gap(p_, a, G, {e.plus.with(e.minus).middle(), 0});
      return c;
    }
    const double plus = e.plus.middle(), minus = e.minus.middle();
    const double bias = 0.5 * (plus + minus);
    c.gap = duality_gap(p_, a, G, {bias, best_cap(a, G, bias)});
    return c;
  }
  void candidates(const double* a, const double* G, const std::vector<std::int32_t>& slot, CandidateList (&out)[lists]) const {
    for (Index i = 0; i < p_.size; ++i) {
      if (slot[i] >= 0) continue;
      const auto v = static_cast<std::int32_t>(i);
      const int c = p_.side[i] > 0 ? 0 : 2;
      if (a[i] < p_.upper[i]) out[c].push_back({G[i], v});
      if (a[i] > p_.lower[i]) out[c + 1].push_back({-G[i], v});
    }
  }

 private:
  // The cap's multiplier that makes the gap least for this bias: the gap is convex in it.
  double best_cap(const double* a, const double* G, double bias) const {
    double high = 0;
    for (Index i = 0; i < p_.size; ++i) high = std::max(high, p_.side[i] * (G[i] + p_.ridge[i] * a[i] - bias));
    double low = 0;
    for (int step = 0; step < 60 && high - low > 1e-15 * high; ++step) {
      const double cap = 0.5 * (low + high);
      double mass = 0;  // sum of side * argmax in conjugate: falls as the multiplier grows
      for (Index i = 0; i < p_.size && mass <= p_.total; ++i) {
        const double r = G[i] + p_.ridge[i] * a[i] - bias - cap * p_.side[i];
        double x = r > 0 ? p_.upper[i] : p_.lower[i];
        if (p_.ridge[i] > 0) x = std::clamp(r / p_.ridge[i], p_.lower[i], p_.upper[i]);
        mass += p_.side[i] * x;
      }
      (mass > p_.total ? low : high) = cap;
    }
    return high;
  }

  const Problem& p_;
};

}  // namespace slimsvm
