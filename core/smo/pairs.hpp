// Second-order SMO on a block small enough to hold its matrix: the inner loop of the solver.
//
// One step: the variable i that wants most to grow, the partner j that promises the largest gain
// (G_i - G_j)^2 / (K_ii + K_jj - 2 K_ij), and the best step along a_i += t, a_j -= t that both bounds allow.
#pragma once

#include <vector>

#include "smo/feasible.hpp"
#include "cpu/simd.hpp"

namespace slimsvm {

template <class Real>
struct Block {
  int size = 0, stride = 0;  // stride: size rounded up to whole vectors; padding never qualifies for a move
  Real* matrix = nullptr;    // K + ridge, [size][stride]
  std::vector<Real> diagonal;
  std::vector<double> G, a, lower, upper, side;
  // Where the penalty's power is not 2, the matrix is K alone. Powers are slow: slopes are kept with the duals.
  std::vector<double> ridge, slope;
  std::vector<double> least;  // below power 2: sizes of duals below which the penalty's curvature is not followed
  double power = 2;
  // 0 where a variable may grow (shrink), -inf (+inf) elsewhere: added to G before a maximum (minimum).
  // Index 0: all variables, or class + and 1: class -, with a cap; then `shrink_any` is for both.
  std::vector<double> grow[2], shrink[2], shrink_any;
  double room = infinity, total = infinity;  // what the cap leaves
  bool exact = false;                        // the cap is an equation: nothing is left, ever
  Index steps = 0;
  bool negative_curvature = false, unbounded = false;  // not a kernel; and nothing stops the objective

  const Real* row(int i) const { return matrix + static_cast<std::size_t>(i) * stride; }
  bool capped() const { return total < infinity; }
  bool cap_active() const { return exact || slimsvm::cap_active(room, total); }
};

// Share of the diagonal below which a pair's curvature counts as none, and a last resort for zero rows.
template <class Real>
constexpr Real flat = sizeof(Real) == 4 ? Real(5e-10) : Real(5e-13);
template <class Real>
constexpr Real smallest_curvature = sizeof(Real) == 4 ? Real(1e-30) : Real(1e-290);

namespace detail {

struct Best {
  double value;
  int index;
};

template <class T, int N, int Step = 1>
SLIM_INLINE T lane_max(Vec<T, N> v) {
  v = vmax(v, swapped<T, N, Step>(v));
  if constexpr (2 * Step < N)
    return lane_max<T, N, 2 * Step>(v);
  else
    return v[0];
}
template <class T, int N, int Step = 1>
SLIM_INLINE T lane_min(Vec<T, N> v) {
  v = vmin(v, swapped<T, N, Step>(v));
  if constexpr (2 * Step < N)
    return lane_min<T, N, 2 * Step>(v);
  else
    return v[0];
}

// The largest value, and the least of the indices that have it.
template <class T, int N, class I>
SLIM_INLINE Best best_lane(Vec<T, N> value, Vec<I, N> index) {
  const T most = lane_max<T, N>(value);
  const Vec<I, N> holders = value == splat<Vec<T, N>>(most) ? index : splat<Vec<I, N>>(std::numeric_limits<I>::max());
  return {static_cast<double>(most), static_cast<int>(lane_min<I, N>(holders))};
}

template <int N, class I>
SLIM_INLINE Vec<I, N> iota() {
  Vec<I, N> v{};
#pragma GCC unroll 16
  for (int l = 0; l < N; ++l) v[l] = static_cast<I>(l);
  return v;
}

// argmax of G + mask
template <class Isa>
SLIM_INLINE Best largest(const double* G, const double* mask, int count) {
  constexpr int N = lanes<double, Isa>;
  using D = Vec<double, N>;
  using I = Vec<std::int64_t, N>;
  D best = splat<D>(-infinity);
  I at{}, now = iota<N, std::int64_t>();
  for (int t = 0; t < count; t += N, now += N) {
    const D g = load<D>(G + t) + load<D>(mask + t);
    at = g > best ? now : at;
    best = vmax(g, best);  // in this order what is not a number is passed over
  }
  return best_lane<double, N, std::int64_t>(best, at);
}

template <class Isa>
SLIM_INLINE double smallest(const double* G, const double* mask, int count) {
  constexpr int N = lanes<double, Isa>;
  using D = Vec<double, N>;
  D best = splat<D>(infinity);
  for (int t = 0; t < count; t += N) best = vmin(load<D>(G + t) + load<D>(mask + t), best);
  return lane_min<double, N>(best);
}

// The partner of i among variables that may shrink. Gains only rank candidates: Real is accurate enough.
template <class Isa, class Real>
SLIM_INLINE Best partner(const Block<Real>& b, int i, const double* shrink) {
  constexpr int N = lanes<double, Isa>;
  using D = Vec<double, N>;
  using R = Vec<Real, N>;
  using Int = typename IntOf<Real>::type;
  using I = Vec<Int, N>;
  const D gi = splat<D>(b.G[i]);
  const R di = splat<R>(b.diagonal[i]);
  const Real* row = b.row(i);
  R best = splat<R>(Real(-1));
  I at{}, now = iota<N, Int>();
  for (int t = 0; t < b.stride; t += N, now += N) {
    const R slope = __builtin_convertvector(gi - (load<D>(b.G.data() + t) + load<D>(shrink + t)), R);
    const R both = di + load<R>(b.diagonal.data() + t);
    const R curvature = vmax(both - Real(2) * load<R>(row + t), both * flat<Real> + smallest_curvature<Real>);
    const R gain = slope > R{} ? slope * slope / curvature : splat<R>(Real(-1));
    at = gain > best ? now : at;
    best = vmax(gain, best);
  }
  return best_lane<Real, N, Int>(best, at);
}

template <class Real>
SLIM_INLINE void set_masks(Block<Real>& b, int i) {
  const int c = b.capped() && b.side[i] < 0 ? 1 : 0;
  b.grow[c][i] = b.a[i] < b.upper[i] ? 0.0 : -infinity;
  b.shrink[c][i] = b.a[i] > b.lower[i] ? 0.0 : infinity;
  if (b.capped()) b.shrink_any[i] = b.shrink[c][i];
}

// Slope of the penalty at x. Powers other than 2 only: a square is part of the matrix.
template <class Real>
SLIM_INLINE double slope(const Block<Real>& b, int i, double x) {
  return std::copysign(b.ridge[i] * std::pow(std::fabs(x), b.power - 1), x);
}

// A variable's part of the penalty as it enters the block. Below power 2 the curvature is infinite at zero: there the
// value at the dual that answers a slack of 0.1 stands for it.
template <class Real>
SLIM_INLINE void set_penalty(Block<Real>& b, int i, double ridge) {
  b.ridge[i] = ridge;
  b.slope[i] = slope(b, i, b.a[i]);
  b.least[i] = b.power < 2 ? std::pow(0.1 / ridge, 1 / (b.power - 1)) : 0.0;
}

// Curvature of the penalty at x, where its slope is known.
SLIM_INLINE double curvature_at(double power, double slope, double x) {
  if (x == 0) return power < 2 ? 1e30 : 0.0;
  return std::min((power - 1) * std::fabs(slope / x), 1e30);
}

// The same at the dual, for the choice of partners.
template <class Real>
SLIM_INLINE double curvature_of_penalty(const Block<Real>& b, int i) {
  if (std::fabs(b.a[i]) < b.least[i]) return curvature_at(b.power, 0.1, b.least[i]);
  return curvature_at(b.power, b.slope[i], b.a[i]);
}

// Step of a pair under a penalty: the root of  gain - curvature t - (change of both slopes), falling in t. A thousandth of
// the gain may be left: another pair has more to give by then. The slopes at its end become those of the block.
template <class Real>
SLIM_INLINE double step_under_penalty(Block<Real>& b, int i, int j, double curvature, double most) {
  const double gain = b.G[i] - b.G[j], from_i = b.slope[i], from_j = b.slope[j];
  double to_i = from_i, to_j = from_j;
  const auto left = [&](double t) {
    to_i = slope(b, i, b.a[i] + t), to_j = slope(b, j, b.a[j] - t);
    return gain - curvature * t - (to_i - from_i) + (to_j - from_j);
  };
  // No further than one of the three terms alone would allow.
  const double answer = std::copysign(std::pow(std::fabs(from_i + gain) / b.ridge[i], 1 / (b.power - 1)), from_i + gain);
  double low = 0, high = std::min({most, gain / curvature, answer - b.a[i]}), t = high;
  if (!(high > 0)) return 0;
  double now = left(t);
  if (now < 0)
    for (int k = 0; k < 100 && high - low > 1e-14 * high && std::fabs(now) > 1e-3 * gain; ++k) {
      // Newton's step where it stays inside, and a bisection now and then.
      const double bend = curvature + curvature_at(b.power, to_i, b.a[i] + t) + curvature_at(b.power, to_j, b.a[j] - t);
      t += now / bend;
      if (k % 4 == 3 || !(t > low && t < high)) t = 0.5 * (low + high);
      now = left(t);
      (now > 0 ? low : high) = t;
    }
  b.slope[i] = to_i, b.slope[j] = to_j;
  return t;
}

// Moves the pair as far as is best and allowed; the step taken.
template <class Real>
SLIM_INLINE double move(Block<Real>& b, int i, int j) {
  const double di = b.row(i)[i], dj = b.row(j)[j];
  double curvature = di + dj - 2 * static_cast<double>(b.row(i)[j]);
  // A verdict on the kernel, for which float is not precise enough.
  if (sizeof(Real) == sizeof(double) && curvature < -1e-6 * (std::fabs(di) + std::fabs(dj))) b.negative_curvature = true;
  // Equal rows: go to the bound.
  curvature = std::max<double>(curvature, (di + dj) * flat<Real> + smallest_curvature<Real>);
  const double grow = b.upper[i] - b.a[i], shrink = b.a[j] - b.lower[j];
  const bool both = b.capped() && b.side[i] > 0 && b.side[j] < 0;   // both add to the capped sum
  const bool neither = b.capped() && b.side[i] < 0 && b.side[j] > 0;
  const double limit = both ? 0.5 * b.room : infinity;
  const double most = std::min(limit, std::min(grow, shrink));
  if (b.negative_curvature && most == infinity) {
    b.unbounded = true;
    return 0;
  }
  const double t = b.power == 2 ? std::min((b.G[i] - b.G[j]) / curvature, most) : step_under_penalty(b, i, j, curvature, most);
  b.a[i] = t >= grow ? b.upper[i] : b.a[i] + t;
  b.a[j] = t >= shrink ? b.lower[j] : b.a[j] - t;
  if (both) b.room = t >= limit ? 0.0 : b.room - 2 * t;
  if (neither) b.room += 2 * t;
  set_masks(b, i);
  set_masks(b, j);
  ++b.steps;
  return t;
}

// The gradient after a step of the pair, where the penalty had the given slopes.
template <class Isa, class Real>
SLIM_INLINE void update(Block<Real>& b, int i, int j, double t, double old_i, double old_j) {
  constexpr int N = lanes<double, Isa>;
  using D = Vec<double, N>;
  using R = Vec<Real, N>;
  const Real *ri = b.row(i), *rj = b.row(j);
  const D step = splat<D>(t);
  for (int k = 0; k < b.stride; k += N)
    store(b.G.data() + k, load<D>(b.G.data() + k) - step * (__builtin_convertvector(load<R>(ri + k), D) -
                                                            __builtin_convertvector(load<R>(rj + k), D)));
  if (b.power == 2) return;
  for (const auto& [k, old] : {std::pair{i, old_i}, std::pair{j, old_j}}) {
    b.G[k] -= b.slope[k] - old;
    b.diagonal[k] = static_cast<Real>(b.row(k)[k] + curvature_of_penalty(b, k));
  }
}

}  // namespace detail

// Pairs within a box. Returns when the violation inside the block is at most eps, or after `limit` steps.
struct BoxPairs {
  template <class Isa, class Real>
  static SLIM_INLINE double solve(Block<Real>& b, double eps, Index limit) {
    using namespace detail;
    constexpr int N = lanes<double, Isa>;
    using D = Vec<double, N>;
    using R = Vec<Real, N>;
    using I = Vec<std::int64_t, N>;
    double* G = b.G.data();
    const double *grow = b.grow[0].data(), *shrink = b.shrink[0].data();
    Best i = largest<Isa>(G, grow, b.stride);
    double low = smallest<Isa>(G, shrink, b.stride);
    for (Index s = 0; s < limit; ++s) {
      if (!(i.value - low > eps)) break;
      const Best j = partner<Isa>(b, i.index, shrink);
      if (!(j.value > 0)) break;
      const double t = move(b, i.index, j.index);
      if (b.unbounded) break;
      // The gradient's update and the next choice of i in one pass.
      const Real *ri = b.row(i.index), *rj = b.row(j.index);
      const D step = splat<D>(t);
      D most = splat<D>(-infinity), least = splat<D>(infinity);
      I at{}, now = iota<N, std::int64_t>();
      for (int k = 0; k < b.stride; k += N, now += N) {
        const D g = load<D>(G + k) - step * (__builtin_convertvector(load<R>(ri + k), D) -
                                             __builtin_convertvector(load<R>(rj + k), D));
        store(G + k, g);
        const D up = g + load<D>(grow + k);
        at = up > most ? now : at;
        most = vmax(up, most);
        least = vmin(g + load<D>(shrink + k), least);
      }
      i = best_lane<double, N, std::int64_t>(most, at);
      low = lane_min<double, N>(least);
    }
    return i.value > -infinity && low < infinity ? i.value - low : 0.0;
  }
};

// Pairs within a box under a cap: one candidate i from each class, partners by the legal-pair rule.
struct CappedPairs {
  template <class Isa, class Real>
  static SLIM_INLINE double solve(Block<Real>& b, double eps, Index limit) {
    using namespace detail;
    const double* G = b.G.data();
    double violation = 0;
    for (Index s = 0; s <= limit; ++s) {
      const Best plus = largest<Isa>(G, b.grow[0].data(), b.stride), minus = largest<Isa>(G, b.grow[1].data(), b.stride);
      const CappedBox::ByClass e{{plus.value, smallest<Isa>(G, b.shrink[0].data(), b.stride)},
                                 {minus.value, smallest<Isa>(G, b.shrink[1].data(), b.stride)}};
      violation = std::max(0.0, CappedBox::violation(e, b.cap_active(), b.exact));
      if (!(violation > eps) || s == limit) break;
      int i = -1;
      Best j{0, -1};
      if (plus.value > -infinity) {
        j = partner<Isa>(b, plus.index, (b.cap_active() ? b.shrink[0] : b.shrink_any).data());
        i = plus.index;
      }
      if (minus.value > -infinity) {
        const Best other = partner<Isa>(b, minus.index, (b.exact ? b.shrink[1] : b.shrink_any).data());
        if (i < 0 || other.value > j.value) j = other, i = minus.index;
      }
      if (i < 0 || !(j.value > 0)) break;
      const double old_i = b.slope[i], old_j = b.slope[j.index];
      const double t = move(b, i, j.index);
      if (b.unbounded) break;
      update<Isa>(b, i, j.index, t, old_i, old_j);
    }
    return violation;
  }
};

// Pairs within a box under a penalty of another power than 2.
struct PowerPairs {
  template <class Isa, class Real>
  static SLIM_INLINE double solve(Block<Real>& b, double eps, Index limit) {
    using namespace detail;
    const double* G = b.G.data();
    double violation = 0;
    for (Index s = 0; s <= limit; ++s) {
      const Best i = largest<Isa>(G, b.grow[0].data(), b.stride);
      violation = std::max(0.0, i.value - smallest<Isa>(G, b.shrink[0].data(), b.stride));
      if (!(violation > eps) || s == limit) break;
      const Best j = partner<Isa>(b, i.index, b.shrink[0].data());
      if (!(j.value > 0)) break;
      const double old_i = b.slope[i.index], old_j = b.slope[j.index];
      const double t = move(b, i.index, j.index);
      if (b.unbounded || t == 0) break;
      update<Isa>(b, i.index, j.index, t, old_i, old_j);
    }
    return violation;
  }
};

template <class Pairs, class Real>
struct SolveBlock {
  template <class Isa>
  static SLIM_INLINE double run(Block<Real>* block, double eps, Index limit) {
    return Pairs::template solve<Isa>(*block, eps, limit);
  }
};

}  // namespace slimsvm
