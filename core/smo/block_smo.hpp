// Block SMO: rounds of a working set, its kernel rows by one product, an inner SMO on the set, and one update
// of the gradient. Rows may be float; the dual and the gradient are double.
#pragma once

#include <vector>

#include "matrix/kernel_matrix.hpp"
#include "smo/feasible.hpp"
#include "smo/monitor.hpp"
#include "smo/newton.hpp"
#include "smo/options.hpp"
#include "smo/pairs.hpp"

namespace slimsvm {

// The iterate: duals and minus the gradient. Survives a change of row precision.
struct Iterate {
  std::vector<double> a, G;
  ErrorBound error;  // how far G is from that of a in exact arithmetic
  Index steps = 0, rounds = 0;
  bool negative_curvature = false;
};

template <class Real, class Set>
class BlockSmo {
 public:
  BlockSmo(KernelMatrix<Real>& kernel, const View& view, const Problem& problem, const Set& set, const std::vector<double>& diagonal,
           const Options& options, Iterate& iterate, SolverMonitor& monitor)
      : kernel_(kernel), view_(view), p_(problem), set_(set), diagonal_(diagonal), o_(options), it_(iterate), monitor_(monitor) {
    const Index fits = std::max<Index>(smallest_block, kernel.capacity(view) * 9 / 10);
    const Index wish = p_.size <= double_below ? p_.size : std::max<Index>(smallest_block, o_.block);
    size_ = static_cast<int>(std::min<Index>({p_.size, wish, fits}));
    stride_ = (size_ + 31) / 32 * 32;
    if (stride_ % 128 == 0) stride_ += 32;  // columns of the matrix must not fall into the same cache sets
    if (fills()) stride_ += 32;
    matrix_ = kernel.workspace(options.thread).reserve(static_cast<std::size_t>(size_) * stride_);
    // Padding and empty slots must be finite; the rest is filled before it is read.
    for (int s = 0; s < size_; ++s) {
      const int filled = whole() ? size_ : 0;
      std::fill_n(matrix_ + static_cast<std::size_t>(s) * stride_ + filled, stride_ - filled, Real(0));
    }
    block_.matrix = matrix_;
    block_.size = size_;
    block_.stride = stride_;
    block_.diagonal.assign(stride_, Real(0));
    for (auto* v : {&block_.G, &block_.a, &block_.lower, &block_.upper, &block_.side, &block_.ridge, &block_.slope, &block_.least}) v->assign(stride_, 0.0);
    block_.power = p_.power;
    ceiling_ = dual_ceiling(p_) * (1 + 1e-6);
    if (!p_.centred()) {  // the optimum may be 0, where the dual is what rounding makes it
      double largest = 0;
      for (const double k : diagonal_) largest = std::max(largest, k);
      ceiling_ += 1e-6 * largest * p_.mass() * p_.mass();
    }
    slot_.assign(p_.size, -1);
    variable_.assign(size_, -1);
    entered_.assign(size_, -1);
    tile_of_.resize(size_);
    offset_of_.resize(size_);
  }

  // Rounds until the violation and the relative gap, as far as the tracked gradient tells, are at most the
  // targets. False: the limit of steps is reached, or nothing moves any more at this precision.
  bool run(double violation_target, double gap_target) {
    double best_violation = infinity, best_dual = -infinity;
    Index last_progress = it_.rounds;
    for (;;) {
      const Certificate now = set_.certify(it_.a.data(), it_.G.data());
      if (monitor_.wants_reports()) report(now);
      if (now.violation <= violation_target) {
        if (now.relative() <= gap_target) return finish(), true;
        violation_target = std::min(violation_target, now.violation) * 0.1;
      }
      if (now.violation < 0.9 * best_violation || now.dual > best_dual + 1e-9 * std::max(std::fabs(best_dual), now.least)) {
        best_violation = std::min(best_violation, now.violation);
        best_dual = std::max(best_dual, now.dual);
        last_progress = it_.rounds;
      }
      const bool impossible = !(now.dual <= ceiling_);  // or not a number
      if (sizeof(Real) == sizeof(double)) it_.negative_curvature |= impossible;  // float may be the reason, too
      if (it_.rounds - last_progress > 100 || out_of_steps() || block_.unbounded || impossible) return false;
      // Without a positive semidefinite kernel there may be no optimum to reach.
      if (it_.negative_curvature && it_.steps > 1000 + 100 * p_.size) return false;
      const double eps = std::max(0.5 * violation_target, whole() ? 0.0 : 0.1 * now.violation);
      if (!round(eps)) return false;
    }
  }

  bool whole() const { return size_ == p_.size; }  // the set holds every variable

  bool has_matrix() const { return whole() && !slots_.empty(); }

  // K a from the block's matrix, which is then all of K.
  void product(std::vector<double>& out) const {
    std::vector<const Real*> rows;
    std::vector<double> minus;
    for (int s = 0; s < size_; ++s)
      if (const double a = it_.a[variable_[s]]; a != 0) rows.push_back(block_.row(s)), minus.push_back(-a);
    std::vector<double> by_slot(stride_, 0.0);
    dispatch<SubtractRows<Real>>(static_cast<const Real* const*>(rows.data()), static_cast<const double*>(minus.data()),
                                 static_cast<int>(rows.size()), static_cast<Index>(size_), by_slot.data());
    for (int s = 0; s < size_; ++s) {
      const Index v = variable_[s];
      out[v] = by_slot[s] - ridge_in_matrix(v) * it_.a[v];
    }
  }

 private:
  double ridge_in_matrix(Index v) const { return p_.power == 2 ? p_.ridge[v] : 0.0; }
  // A single problem that fits one block needs no cache.
  bool fills() const { return whole() && kernel_.covers(view_); }
  double block_dual() const {
    double sum = 0;
    for (const int s : slots_) sum += 0.5 * block_.a[s] * (p_.linear[variable_[s]] + block_.G[s]);
    return sum;
  }
  bool out_of_steps() const { return o_.max_steps >= 0 && it_.steps >= o_.max_steps; }

  void finish() {
    if constexpr (std::is_same_v<Real, double>) {
      if (!has_matrix()) return;
      load_block();
      polish(block_);
      store_block();
    }
  }

  void report(const Certificate& now) {
    Index vectors = 0;
    for (const double a : it_.a) vectors += a != 0;
    monitor_.report({it_.steps, it_.rounds, now, vectors});
  }

  bool round(double eps) {
    choose();
    load_block();
    const Index before = block_.steps;
    if (!whole()) slices_ = 0;  // another block
    for (;;) {  // in slices, so that Ctrl-C is heard and a slow block gets a Newton step
      Index limit = p_.power == 2 ? slice : std::min<Index>(slice, Index(4) * size_);
      if (o_.max_steps >= 0) limit = std::min(limit, o_.max_steps - it_.steps - (block_.steps - before));
      const Index start = block_.steps;
      const double violation = pair_steps(block_, eps, limit);
      monitor_.poll();
      if (violation <= eps || block_.steps - start < limit || limit <= 0) break;
      if (block_.steps - before > Index(100) * size_ + 20000) break;  // leave a hard block for a better one
      if (block_.negative_curvature || (whole() && p_.power == 2 && !(block_dual() <= ceiling_))) break;
      const std::vector<int> free = free_variables(block_);
      if (free.size() >= 2 && free.size() <= most_free(block_)) newton_step(block_, free);
      // A block on which pairs crawl: from bound to bound, with more patience each time.
      if (++slices_ % 8 == 0 && active_set(block_, eps, 10 * std::min(slices_, 100))) break;
      // The gap says more than the violation does.
      if (p_.power != 2 && block_.steps - before >= Index(8) * size_) break;
    }
    it_.steps += block_.steps - before;
    ++it_.rounds;
    it_.negative_curvature |= block_.negative_curvature;
    return store_block() || block_.steps > before;
  }

  // Working set: the newest of the last one, then the worst violators from each list in turn.
  void choose() {
    if (whole()) {
      if (variable_[0] >= 0) return;  // all are in
      fresh_.reserve(size_);
      for (int s = 0; s < size_; ++s) enter(s, s);
      return;
    }
    std::vector<int> order(variable_.size());
    std::iota(order.begin(), order.end(), 0);
    released_.clear();
    const int kept = std::min(static_cast<int>(o_.keep * size_), size_ - Set::lists);  // room for the worst of each list
    std::stable_sort(order.begin(), order.end(), [&](int x, int y) { return entered_[x] > entered_[y]; });
    for (std::size_t k = kept; k < order.size(); ++k) release(order[k]);
    std::vector<int> empty;
    for (int s = 0; s < size_; ++s)
      if (variable_[s] < 0) empty.push_back(s);
    fresh_.clear();
    if (empty.empty()) return;
    for (auto& list : lists_) list.clear();
    set_.candidates(it_.a.data(), it_.G.data(), slot_, lists_);
    fill(empty);
    // Places that no violator wants go back to the variables that just left.
    for (const Index v : released_) {
      if (empty.empty()) break;
      if (slot_[v] < 0) enter(empty.back(), v), empty.pop_back();
    }
  }

  void fill(std::vector<int>& empty) {
    const auto worse = [](const Candidate& x, const Candidate& y) {
      return x.badness > y.badness || (x.badness == y.badness && x.variable < y.variable);
    };
    for (auto& list : lists_) {
      const std::size_t wanted = std::min(list.size(), empty.size());
      std::nth_element(list.begin(), list.begin() + wanted, list.end(), worse);
      list.resize(wanted);
      std::sort(list.begin(), list.end(), worse);
    }
    std::reverse(empty.begin(), empty.end());
    std::size_t next[Set::lists] = {};
    for (bool any = true; any && !empty.empty();) {
      any = false;
      for (int l = 0; l < Set::lists && !empty.empty(); ++l) {
        while (next[l] < lists_[l].size() && slot_[lists_[l][next[l]].variable] >= 0) ++next[l];
        if (next[l] == lists_[l].size()) continue;
        enter(empty.back(), lists_[l][next[l]].variable);
        empty.pop_back();
        any = true;
      }
    }
  }

  void enter(int s, Index v) {
    variable_[s] = v;
    slot_[v] = s;
    entered_[s] = it_.rounds;
    fresh_.push_back(s);
    const auto& tiles = view_.tiles;
    const auto after = std::upper_bound(tiles.begin(), tiles.end(), v, [](Index x, const View::Tile& t) { return x < t.first; });
    tile_of_[s] = static_cast<int>(after - tiles.begin()) - 1;
    offset_of_[s] = static_cast<int>(v - tiles[tile_of_[s]].first);
  }
  void release(int s) {
    if (variable_[s] < 0) return;
    released_.push_back(variable_[s]);
    slot_[variable_[s]] = -1;
    variable_[s] = -1;
    entered_[s] = -1;
  }

  // Rows for the set, the block's matrix (new rows and columns only), and the block's copy of the iterate.
  void load_block() {
    slots_.clear();
    positions_.clear();
    for (int s = 0; s < size_; ++s)
      if (variable_[s] >= 0) {
        slots_.push_back(s);
        positions_.push_back(view_.position(variable_[s]));
      }
    if (fills())
      fill_matrix();
    else
      update_matrix();
    block_.total = p_.total;
    block_.exact = p_.exact;
    double used = 0;
    if (p_.exact) {
      block_.room = 0;
    } else if (p_.total < infinity) {
      for (Index v = 0; v < p_.size; ++v) used += p_.side[v] * it_.a[v];
      block_.room = std::max(0.0, p_.total - used);
    }
    for (int c = 0; c < 2; ++c) {
      block_.grow[c].assign(stride_, -infinity);
      block_.shrink[c].assign(stride_, infinity);
    }
    block_.shrink_any.assign(stride_, infinity);
    for (const int s : slots_) {
      const Index v = variable_[s];
      block_.G[s] = it_.G[v];
      block_.a[s] = it_.a[v];
      block_.lower[s] = p_.lower[v];
      block_.upper[s] = p_.upper[v];
      if (p_.total < infinity) block_.side[s] = p_.side[v];
      detail::set_masks(block_, s);
      if (p_.power == 2) continue;
      detail::set_penalty(block_, s, p_.ridge[v]);
      block_.diagonal[s] = static_cast<Real>(diagonal_[v] + detail::curvature_of_penalty(block_, s));
    }
  }

  void fill_matrix() {
    if (fresh_.empty()) return;
    kernel_.fill(matrix_, stride_, monitor_);
    for (int s = 0; s < size_; ++s)
      matrix_[static_cast<std::size_t>(s) * stride_ + s] = block_.diagonal[s] = static_cast<Real>(diagonal_[s] + ridge_in_matrix(s));
    fresh_.clear();
  }

  void update_matrix() {
    if (whole() && fresh_.empty()) return;
    kernel_.rows(view_, positions_, table_, monitor_);
    by_position_ = slots_;
    std::sort(by_position_.begin(), by_position_.end(), [&](int x, int y) { return variable_[x] < variable_[y]; });
    const std::size_t tiles = view_.tiles.size();
    std::vector<int> place(size_, -1);
    for (std::size_t i = 0; i < slots_.size(); ++i) place[slots_[i]] = static_cast<int>(i);
    // Entries of the new rows, gathered from the cache column by column in order of position.
    for (const int s : fresh_) {
      Real* const* row = table_.data() + place[s] * tiles;
      Real* to = matrix_ + static_cast<std::size_t>(s) * stride_;
      if (whole()) {  // slots are in the order of the variables
        for (std::size_t t = 0; t < tiles; ++t) std::copy(row[t], row[t] + view_.tiles[t].count, to + view_.tiles[t].first);
      } else {
        for (const int c : by_position_) to[c] = row[tile_of_[c]][offset_of_[c]];
      }
      const Index v = variable_[s];
      to[s] = block_.diagonal[s] = static_cast<Real>(diagonal_[v] + ridge_in_matrix(v));
    }
    // Their mirror images in the columns of the old rows.
    if (fresh_.size() == slots_.size()) return fresh_.clear();
    for (const int c : slots_) {
      Real* to = matrix_ + static_cast<std::size_t>(c) * stride_;
      for (const int s : fresh_) to[s] = matrix_[static_cast<std::size_t>(s) * stride_ + c];
    }
  }

  // Carries the block's moves to the iterate; false if there were none.
  bool store_block() {
    const std::size_t tiles = view_.tiles.size();
    if (whole()) return store_whole();
    std::vector<double> moved, farther;
    std::vector<const Real*> rows;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const int s = slots_[i];
      const Index v = variable_[s];
      const double delta = block_.a[s] - it_.a[v];
      if (delta == 0) continue;
      moved.push_back(delta);
      farther.push_back(it_.error.distance(v, block_.a[s]) - it_.error.distance(v, it_.a[v]));
      rows.insert(rows.end(), table_.begin() + i * tiles, table_.begin() + (i + 1) * tiles);
      it_.G[v] -= p_.power == 2 ? p_.ridge[v] * delta : block_.slope[s] - p_.slope(v, it_.a[v]);
      it_.a[v] = block_.a[s];
    }
    if (moved.empty()) return false;
    kernel_.subtract(view_, rows, moved, farther, it_.G.data(), it_.error, monitor_);
    return true;
  }

  // Slots are in the order of the variables, and the block's gradient is the gradient.
  bool store_whole() {
    if (std::equal(it_.a.begin(), it_.a.end(), block_.a.begin())) return false;
    std::copy_n(block_.a.begin(), size_, it_.a.begin());
    std::copy_n(block_.G.begin(), size_, it_.G.begin());
    it_.error.forget();  // its way there is not known
    return true;
  }

  KernelMatrix<Real>& kernel_;
  const View& view_;
  const Problem& p_;
  const Set& set_;
  const std::vector<double>& diagonal_;
  const Options& o_;
  Iterate& it_;
  SolverMonitor& monitor_;

  double ceiling_ = 0;
  int size_ = 0, stride_ = 0, slices_ = 0;
  Real* matrix_ = nullptr;
  Block<Real> block_;
  std::vector<std::int32_t> slot_;      // of each variable, -1: not in the set
  std::vector<Index> variable_;         // in each slot, -1: empty
  std::vector<Index> entered_;          // round in which it came
  std::vector<int> tile_of_, offset_of_, fresh_, slots_, by_position_;
  std::vector<Index> released_, positions_;
  std::vector<Real*> table_;
  CandidateList lists_[Set::lists];
};

}  // namespace slimsvm
