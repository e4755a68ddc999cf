// Passes over rows, for machines f_o(x) = w_o.p(x) + b_o over few features p(x) = T' k(Z, x).
//
// A pass computes everything that it needs of a row anew (kernel values, features, decision values, duals) while the row
// is in the cache, and leaves sums over rows only. Features are kept where memory allows; nothing else is held for a row.
// Rows are split into slots by their number alone, and sums of slots are added in a fixed order: the same bits whatever the
// number of threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <vector>

#include "kernels/kernel.hpp"
#include "learning/loss.hpp"
#include "learning/panels.hpp"
#include "cpu/threads.hpp"

namespace slimsvm {

// Class numbers and weights of rows, and what they mean to each output: a side (+1, -1, or 0: no part) and a cost. Or
// sides (or targets) of each row and output as they are given, and costs: given too, or what a row counts times the cost of
// an output.
struct Labels {
  const double *sides = nullptr, *costs = nullptr;  // rows x outputs
  const void* codes = nullptr;
  int code_bytes = 4;
  const double* counts = nullptr;
  Index count_step = 1;  // 0: all rows count the same
  int outputs = 1;
  std::vector<double> side, cost;  // classes x outputs; one class where sides are given

  int code(Index i) const {
    switch (code_bytes) {
      case 1: return static_cast<const std::int8_t*>(codes)[i];
      case 2: return static_cast<const std::int16_t*>(codes)[i];
      case 4: return static_cast<const std::int32_t*>(codes)[i];
      default: return static_cast<int>(static_cast<const std::int64_t*>(codes)[i]);
    }
  }
  double count(Index i) const { return counts[i * count_step]; }
};

// Sums of slots, added in pairs of neighbours, then pairs of pairs: in the same order whichever slot is done first. Who
// completes a pair adds it, so that threads do not wait for each other.
class OrderedSums {
 public:
  // `parts`: begin and end of what counts, where not all does.
  using Parts = std::vector<std::pair<std::size_t, std::size_t>>;
  OrderedSums(int slots, std::size_t size, Parts parts = {})
      : total(size, 0.0), slots_(static_cast<std::size_t>(slots)), parts_(std::move(parts)) {
    if (parts_.empty()) parts_.emplace_back(0, size);
  }
  std::vector<double> total;

  std::vector<double> fresh() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!free_.empty()) {
        std::vector<double> part = std::move(free_.back());
        free_.pop_back();
        return part;
      }
    }
    return std::vector<double>(total.size(), 0.0);
  }
  void give(std::size_t slot, std::vector<double>&& part) {
    std::vector<double> sum = std::move(part);
    std::size_t place = slot, level = 0, count = slots_;
    for (; count > 1; ++level, place /= 2, count = (count + 1) / 2) {
      if (place + 1 == count && place % 2 == 0) continue;  // it has no neighbour
      std::vector<double> other;
      {
        std::lock_guard<std::mutex> lock(mutex_);
        const auto found = waiting_.find({level, place ^ 1});
        if (found == waiting_.end()) {
          waiting_.emplace(std::pair(level, place), std::move(sum));
          return;
        }
        other = std::move(found->second);
        waiting_.erase(found);
      }
      for (const auto& [begin, end] : parts_)
        for (std::size_t k = begin; k < end; ++k) sum[k] += other[k], other[k] = 0;  // a + b is b + a
      std::lock_guard<std::mutex> lock(mutex_);
      free_.push_back(std::move(other));
    }
    total = std::move(sum);
  }

 private:
  std::mutex mutex_;
  std::size_t slots_;
  Parts parts_;
  std::map<std::pair<std::size_t, std::size_t>, std::vector<double>> waiting_;  // by level and place
  std::vector<std::vector<double>> free_;
};

// Duals and curvatures of one output in one panel; returns the loss. `Read`: of labels or of targets.
template <class Real, class Read>
struct LossAt {
  template <class Isa>
  static SLIM_INLINE double run(const Real* f, double bias, const double* y, const double* c, QuadraticLoss given, double* a, double* h) {
    const Read loss(given);
    double value = 0;
    const double steepness = loss.width > 0 ? 1 / loss.width : 0.0;
    for (int r = 0; r < panel_rows; ++r) {
      const double xi = Read::missed(y[r], static_cast<double>(f[r]) + bias);
      a[r] = c[r] * Read::side(y[r]) * loss.slope(xi);
      h[r] = loss.curved(xi) ? c[r] * steepness : 0.0;
      value += c[r] * loss.value(xi);
    }
    return value;
  }
};

// Derivatives of the loss along a line: sum of -a q and of h q^2 at f + t q.
template <class Real, class Read>
struct LossAlong {
  template <class Isa>
  static SLIM_INLINE void run(const Real* f, const Real* q, double bias, double turn, const double* y, const double* c, double t,
                              QuadraticLoss given, double* first, double* second) {
    const Read loss(given);
    double slope = 0, bend = 0;
    const double steepness = loss.width > 0 ? 1 / loss.width : 0.0;
    for (int r = 0; r < panel_rows; ++r) {
      const double along = Read::side(y[r]) * (static_cast<double>(q[r]) + turn);
      const double xi = Read::missed(y[r], static_cast<double>(f[r]) + bias) - t * along;
      slope -= c[r] * along * loss.slope(xi);
      bend += loss.curved(xi) ? c[r] * steepness * along * along : 0.0;
    }
    *first += slope;
    *second += bend;
  }
};

template <class Real>
struct TimesSlope {
  template <class Isa>
  static SLIM_INLINE void run(const Real* slope, bool squared, std::size_t count, Real* out) {
    if (squared)
      for (std::size_t k = 0; k < count; ++k) out[k] *= Real(1) - slope[k] * slope[k];
    else
      for (std::size_t k = 0; k < count; ++k) out[k] *= slope[k];
  }
};

// Of a single output, both at once: out[j][row] = beta_j a_row k'.
template <class Real>
struct PullOne {
  template <class Isa>
  static SLIM_INLINE void run(const Real* beta, const Real* duals, const Real* slope, bool squared, int vectors, Real* out) {
    constexpr int L = lanes<Real, Isa>;
    using V = Vec<Real, L>;
    for (int j = 0; j < vectors; ++j)
#pragma GCC unroll 8
      for (int r = 0; r < panel_rows; r += L) {
        const V s = load<V>(slope + j * panel_rows + r), product = splat<V>(beta[j]) * load<V>(duals + r);
        store(out + j * panel_rows + r, product * (squared ? splat<V>(Real(1)) - s * s : s));
      }
  }
};

using Which = std::vector<int>;

// Signed duals of one output that are known better than from its decision values, by ascending row.
struct Known {
  const Index* rows = nullptr;
  const double* duals = nullptr;
  Index count = 0;
};

// Sums over rows that bound an output's objective from both sides, followed by sum a+ k(z, x) and sum a- k(z, x) over vectors.
// Positive and negative duals are kept apart: they are scaled until they balance.
enum Evidence { loss_value, loss_doubt, up, down, up_gain, down_gain, up_ridge, down_ridge, squares, spread, evidence_count };

// What a pass may ask of rows, in either precision.
class AnyPasses {
 public:
  virtual ~AnyPasses() = default;
  int outputs() const { return labels_.outputs; }
  int features() const { return features_; }
  int vectors() const { return vectors_; }
  Index size() const { return x_->size; }
  Index inputs() const { return x_->width; }
  int slots() const { return static_cast<int>((size() + slot_rows_ - 1) / slot_rows_); }

  // From now on so many threads, at most; results do not depend on it.
  virtual void use(int threads) {
    threads = std::min(threads, std::max(1, slots()));
    if (threads != pool_->size()) pool_ = std::make_unique<ThreadPool>(threads);
  }
  // New rows (the same number: scaled ones), other vectors: T is vectors x features.
  virtual void look(std::shared_ptr<Rows> x, const AnyKernel& kernel, const Rows& z, const double* T, int features) = 0;
  // All that follows is for the outputs in `which`, at weights w (one row of features + 1 for each, the bias last).
  // Losses, moments [p 1]'a, and [p 1]' diag(h) [p 1].
  virtual void equations(const Which& which, const double* w, QuadraticLoss loss, double* value, double* moments, double* grams,
                         Monitor& monitor) = 0;
  // First and second derivatives of the losses at w + t step, for `tries` values of t an output.
  virtual void line(const Which& which, const double* w, const double* step, const double* t, int tries, QuadraticLoss loss,
                    double* first, double* second, Monitor& monitor) = 0;
  // With the duals at w and coefficients beta (vectors x outputs): M_ij = -sum_o a_io beta_jo k'(x_i, z_j), and of it
  // M'[x 1] (vectors x inputs + 1) and sum_ij M_ij x_i^2 (inputs; null: nobody asks).
  virtual void pull(const Which& which, const double* w, const double* beta, QuadraticLoss loss, double* value, double* products,
                    double* squares, Monitor& monitor) = 0;
  // What a certificate is made of: see `Evidence`. `reach` and `units` say how well decision values are known.
  virtual void evidence(const Which& which, const double* w, QuadraticLoss loss, const std::vector<Known>& known, const double* reach,
                        double units, double* out, Monitor& monitor) = 0;
  // Decision values of rows from `begin` on (rows x outputs).
  virtual void values(const Which& which, const double* w, Index begin, Index end, double* out, Monitor& monitor) = 0;
  // Features of some rows, in ascending order.
  virtual void features_at(const Index* rows, Index count, double* out, Monitor& monitor) = 0;

 protected:
  AnyPasses(std::shared_ptr<Rows> x, Labels labels, int threads) : x_(std::move(x)), labels_(std::move(labels)) {
    constexpr Index many = 32;
    const Index least = 256 + 60 * (labels_.outputs - 1);  // sums of many outputs cost more to add up
    slot_rows_ = std::max((least + panel_rows - 1) / panel_rows * panel_rows, ((x_->size + many - 1) / many + panel_rows - 1) / panel_rows * panel_rows);
    pool_ = std::make_unique<ThreadPool>(1);
    AnyPasses::use(threads);
  }

  std::shared_ptr<Rows> x_;
  Labels labels_;
  Index slot_rows_ = 0;
  int features_ = 0, vectors_ = 0;
  std::unique_ptr<ThreadPool> pool_;
};

template <class Real>
class Passes final : public AnyPasses {
 public:
  // `keep`: bytes that features may take.
  Passes(std::shared_ptr<Rows> x, Labels labels, int threads, std::size_t keep)
      : AnyPasses(std::move(x), std::move(labels), threads), keep_(keep), local_(pool_->size()) {}

  void use(int threads) override {
    AnyPasses::use(threads);
    local_.resize(static_cast<std::size_t>(pool_->size()));
  }

  void look(std::shared_ptr<Rows> x, const AnyKernel& kernel, const Rows& z, const double* T, int features) override {
    const bool stay = kind_ == kernel.kind() && x_->same(*x);  // the same rows are looked at again
    kind_ = kernel.kind();
    x_ = std::move(x);
    vectors_ = static_cast<int>(z.size);
    features_ = features;
    plain_ = is_identity(T, vectors_, features);
    if (!plain_) whitening_.pack(T, features, vectors_, 1, features, true);
    sparse_ = x_->density() < sparse_below;
    exact_ = sizeof(Real) == 4 && kernel->blurred_in_float(z);
    if (exact_)
      kernel_double_.look(kernel->blocks(double(), z.width, sparse_), z);
    else
      kernel_.look(kernel->blocks(Real(), z.width, sparse_), z);
    slope_.look(kernel->slope_blocks(Real(), z.width, sparse_), z);
    squared_ = kernel->slope_kind() == Slope::one_minus_squared;
    const std::size_t panels = static_cast<std::size_t>((size() + panel_rows - 1) / panel_rows), panel = panel_size();
    kept_ = panels * panel * sizeof(Real) <= keep_;
    if (kept_) store_.reserve(panels * panel);
    filled_.assign(kept_ ? panels : 0, 0);
    // Kernel values of wide rows cost more to compute than to keep. `pull` asks for k', which is to be known from them.
    const std::size_t cells = panels * vectors_ * panel_rows;
    kernel_kept_ = kept_ && !plain_ && x_->width >= wide && tells_slope(kernel->slope_kind()) && cells * sizeof(Real) <= keep_;
    if (kernel_kept_) kernel_store_.reserve(cells);
    // Wide rows that are looked at again cost more to pack than to keep packed.
    const std::size_t packed = panels * panel_rows * static_cast<std::size_t>(x_->width) * sizeof(Real);
    if (!stay || sparse_ || exact_ || x_->width < wide || packed > std::min(keep_, most_packed))
      strips_.clear();
    else if (strips_.empty())
      strips_.resize(panels);
  }

  void equations(const Which& which, const double* w, QuadraticLoss loss, double* value, double* moments, double* grams,
                 Monitor& monitor) override {
    // Rows are scaled by h^1/2 and get one more number, a h^-1/2: its products with the others are the moments.
    const int outputs = static_cast<int>(which.size()), size = features_ + 1, room = room_for<Real>(size + 1);
    const std::size_t gram = static_cast<std::size_t>(room) * room, own = 1 + size + gram;
    const Packed<Real> weights = packed(w, outputs);
    OrderedSums::Parts lower;
    for (int o = 0; o < outputs; ++o) {
      lower.emplace_back(o * own, o * own + 1 + size);
      for (int i = 0; i <= size; ++i) {
        const std::size_t row = o * own + 1 + size + static_cast<std::size_t>(i) * room;
        lower.emplace_back(row, row + i + 1);
      }
    }
    OrderedSums sums(slots(), own * outputs, std::move(lower));
    over_slots(sums, monitor, [&](Local& mine, Index begin, Index end, double* sum) {
      constexpr int most = 64;
      const std::size_t turned_size = static_cast<std::size_t>(panel_rows) * room;
      std::fill_n(mine.rows.reserve(turned_size), turned_size, Real(0));
      for (int r = 0; r < panel_rows; ++r) mine.rows.get()[static_cast<std::size_t>(r) * room + features_] = Real(1);
      Real* buffer = mine.buffer.reserve(static_cast<std::size_t>(outputs) * most * room);
      mine.filled.assign(outputs, 0);
      const auto empty = [&](int o) {
        const Real* rows = buffer + static_cast<std::size_t>(o) * most * room;
        dispatch<SumOverRows<Real>>(rows, room, rows, room, mine.filled[o], size + 1, size + 1, sum + o * own + 1 + size, room, true);
        mine.filled[o] = 0;
      };
      each_panel(begin, end, [&](Index first, int rows) {
        const Real* panel = features_of(mine, first, rows);
        losses(mine, which, panel, weights, w, first, rows, loss);
        bool turned = false;
        for (int o = 0; o < outputs; ++o) {
          double* to = sum + o * own;
          to[0] += mine.value[o];
          const double *a = mine.a.data() + o * panel_rows, *h = mine.h.data() + o * panel_rows;
          for (int r = 0; r < rows; ++r) {
            if (a[r] == 0 && h[r] == 0) continue;
            if (!turned) dispatch<ToRows<Real>>(panel, features_, mine.rows.get(), room);
            turned = true;
            const Real* row = mine.rows.get() + static_cast<std::size_t>(r) * room;
            if (h[r] == 0) {
              dispatch<AddRow<Real>>(row, a[r], size, to + 1);
              continue;
            }
            Real* place = buffer + (static_cast<std::size_t>(o) * most + mine.filled[o]) * room;
            const double root = std::sqrt(h[r]);
            dispatch<ScaleRow<Real>>(row, static_cast<Real>(root), room, place);
            place[size] = static_cast<Real>(a[r] / root);
            if (++mine.filled[o] == most) empty(o);
          }
        }
      });
      for (int o = 0; o < outputs; ++o)
        if (mine.filled[o]) empty(o);
    });
    for (int o = 0; o < outputs; ++o) {
      const double *from = sums.total.data() + o * own, *matrix = from + 1 + size;
      value[o] = from[0];
      for (int j = 0; j < size; ++j) moments[static_cast<std::size_t>(o) * size + j] = from[1 + j] + matrix[static_cast<std::size_t>(size) * room + j];
      double* to = grams + static_cast<std::size_t>(o) * size * size;
      for (int i = 0; i < size; ++i)
        for (int j = 0; j <= i; ++j) to[i * size + j] = to[j * size + i] = matrix[static_cast<std::size_t>(i) * room + j];
    }
  }

  void line(const Which& which, const double* w, const double* step, const double* t, int tries, QuadraticLoss loss, double* first,
            double* second, Monitor& monitor) override {
    const int outputs = static_cast<int>(which.size()), size = features_ + 1;
    std::vector<double> both(w, w + static_cast<std::size_t>(outputs) * size);
    both.insert(both.end(), step, step + static_cast<std::size_t>(outputs) * size);
    const Packed<Real> weights = packed(both.data(), 2 * outputs);
    OrderedSums sums(slots(), static_cast<std::size_t>(outputs) * tries * 2);
    over_slots(sums, monitor, [&](Local& mine, Index begin, Index end, double* sum) {
      each_panel(begin, end, [&](Index start, int rows) {
        const Real* panel = features_of(mine, start, rows);
        const Real* f = mine.values.reserve(static_cast<std::size_t>(2 * outputs) * panel_rows);
        dispatch<PanelProduct<Real>>(&weights, panel, mine.values.get());
        meanings(mine, which, start, rows);
        for (int o = 0; o < outputs; ++o)
          for (int k = 0; k < tries; ++k) {
            double* to = sum + 2 * (static_cast<std::size_t>(o) * tries + k);
            const double *y = mine.y.data() + o * panel_rows, *c = mine.c.data() + o * panel_rows;
            const Real *at = f + o * panel_rows, *along = f + (outputs + o) * panel_rows;
            const double bias = both[o * size + features_], turn = both[(outputs + o) * size + features_];
            if (loss.targets)
              dispatch<LossAlong<Real, OfTargets>>(at, along, bias, turn, y, c, t[o * tries + k], loss, to, to + 1);
            else
              dispatch<LossAlong<Real, OfLabels>>(at, along, bias, turn, y, c, t[o * tries + k], loss, to, to + 1);
          }
      });
    });
    for (int k = 0; k < outputs * tries; ++k) first[k] = sums.total[2 * k], second[k] = sums.total[2 * k + 1];
  }

  void pull(const Which& which, const double* w, const double* beta, QuadraticLoss loss, double* value, double* products,
            double* squares, Monitor& monitor) override {
    const int outputs = static_cast<int>(which.size()), inputs = static_cast<int>(x_->width);
    const bool listed = sparse_ && inputs > few_inputs;  // their nonzeros; products are then transposed while summed
    const int left = room_for<Real>(vectors_), right = listed ? 0 : room_for<Real>(inputs);
    const std::size_t table = listed ? static_cast<std::size_t>(inputs) * vectors_ : static_cast<std::size_t>(left) * right;
    const Packed<Real> weights = packed(w, outputs);
    Packed<Real> coefficients;
    coefficients.pack(beta, vectors_, outputs, outputs, 1);
    const std::size_t masses = outputs + table, inner = masses + vectors_;  // where sums of M and of M x^2 begin
    OrderedSums sums(slots(), inner + (squares ? inputs : 0));
    over_slots(sums, monitor, [&](Local& mine, Index begin, Index end, double* sum) {
      mine.used.clear();
      mine.used_duals.clear();
      Real* by_row = mine.buffer.reserve(static_cast<std::size_t>(pulled_rows) * left);
      const auto flush = [&] {
        if (!kernel_kept_) pull_panels(mine, outputs, coefficients, by_row, left);
        for (std::size_t r = 0; r < mine.used.size(); ++r)
          dispatch<AddRow<Real>>(static_cast<const Real*>(by_row + r * left), 1.0, vectors_, sum + masses);
        add_pulled(mine, by_row, left, right, sum + outputs, squares ? sum + inner : nullptr);
        mine.used.clear();
        mine.used_duals.clear();
      };
      each_panel(begin, end, [&](Index first, int rows) {
        losses(mine, which, features_of(mine, first, rows), weights, w, first, rows, loss);
        for (int o = 0; o < outputs; ++o) sum[o] += mine.value[o];
        if (mine.used.size() + panel_rows > pulled_rows) flush();
        const std::size_t before = mine.used.size();
        for (int r = 0; r < rows; ++r) {
          bool any = false;
          for (int o = 0; o < outputs; ++o) any |= mine.a[o * panel_rows + r] != 0;
          if (!any) continue;
          mine.used.push_back(first + r);
          if (!listed) x_->expect(first + r);  // its inputs are asked for some panels later
          for (int o = 0; o < outputs; ++o) mine.used_duals.push_back(static_cast<Real>(mine.a[o * panel_rows + r]));
        }
        if (kernel_kept_ && mine.used.size() > before) pull_kept(mine, outputs, coefficients, first, before, by_row, left);
      });
      if (!mine.used.empty()) flush();
    });
    const double* from = sums.total.data();
    std::copy(from, from + outputs, value);
    for (int j = 0; j < vectors_; ++j) {
      double* row = products + static_cast<std::size_t>(j) * (inputs + 1);
      for (int k = 0; k < inputs; ++k)
        row[k] = -from[outputs + (listed ? static_cast<std::size_t>(k) * vectors_ + j : static_cast<std::size_t>(j) * right + k)];
      row[inputs] = -from[masses + j];
    }
    for (int k = 0; squares && k < inputs; ++k) squares[k] = -from[inner + k];
    if (sizeof(Real) == sizeof(float)) unshift(products, squares);
  }

  void evidence(const Which& which, const double* w, QuadraticLoss loss, const std::vector<Known>& known, const double* reach,
                double units, double* out, Monitor& monitor) override {
    if (loss.targets)
      evidence_of<OfTargets>(which, w, loss, known, reach, units, out, monitor);
    else
      evidence_of<OfLabels>(which, w, loss, known, reach, units, out, monitor);
  }

  template <class Read>
  void evidence_of(const Which& which, const double* w, QuadraticLoss given, const std::vector<Known>& known, const double* reach,
                   double units, double* out, Monitor& monitor) {
    const Read loss(given);
    const int outputs = static_cast<int>(which.size()), size = features_ + 1;
    const std::size_t own = evidence_count + 2 * static_cast<std::size_t>(features_);
    const Packed<Real> weights = packed(w, outputs);
    OrderedSums sums(slots(), own * outputs);
    over_slots(sums, monitor, [&](Local& mine, Index begin, Index end, double* sum) {
      std::vector<Index> next(outputs, 0);
      for (int o = 0; o < outputs && !known.empty(); ++o)
        next[o] = std::lower_bound(known[o].rows, known[o].rows + known[o].count, begin) - known[o].rows;
      const int room = room_for<Real>(size);
      mine.rows.reserve(static_cast<std::size_t>(panel_rows) * room);
      each_panel(begin, end, [&](Index first, int rows) {
        const Real* panel = features_of(mine, first, rows);
        losses(mine, which, panel, weights, w, first, rows, given);
        Index ids[panel_rows];
        double sizes[panel_rows];
        for (int r = 0; r < rows; ++r) ids[r] = first + r;
        diagonal(ids, rows, sizes);
        bool turned = false;
        for (int o = 0; o < outputs; ++o) {
          double *to = sum + o * own, *a = mine.a.data() + o * panel_rows;
          const double *y = mine.y.data() + o * panel_rows, *c = mine.c.data() + o * panel_rows;
          for (; !known.empty() && next[o] < known[o].count && known[o].rows[next[o]] < first + rows; ++next[o])
            a[known[o].rows[next[o]] - first] = known[o].duals[next[o]];
          to[loss_value] += mine.value[o];
          const double bias = w[static_cast<std::size_t>(o) * size + features_];
          for (int r = 0; r < rows; ++r) {
            if (c[r] == 0) continue;
            const double xi = Read::missed(y[r], static_cast<double>(mine.values.get()[o * panel_rows + r]) + bias);
            // An error of the decision value costs what the dual says; at the corners of a loss more, and never less.
            const double error = Read::worse(xi, units * (std::sqrt(std::fabs(sizes[r])) * reach[o] + std::fabs(bias)) + Read::rounding(units));
            to[loss_doubt] += c[r] * (loss.value(xi + error) - loss.value(xi)) - Read::side(y[r]) * a[r] * error;
            if (a[r] == 0) continue;
            const bool plus = a[r] > 0;
            to[plus ? up : down] += std::fabs(a[r]);
            to[plus ? up_gain : down_gain] += loss.gain(y[r], a[r]);
            to[plus ? up_ridge : down_ridge] += loss.width * a[r] * a[r] / c[r];
            to[squares] += a[r] * a[r];
            to[spread] += a[r] * a[r] * std::fabs(sizes[r]);
            if (!turned) dispatch<ToRows<Real>>(panel, features_, mine.rows.get(), room);
            turned = true;
            dispatch<AddRow<Real>>(static_cast<const Real*>(mine.rows.get() + static_cast<std::size_t>(r) * room), a[r], features_,
                                   to + evidence_count + (plus ? 0 : features_));
          }
        }
      });
      for (int o = 0; o < outputs; ++o) sum[o * own + loss_doubt] = std::max(0.0, sum[o * own + loss_doubt]);
    });
    std::copy(sums.total.begin(), sums.total.end(), out);
  }

  void values(const Which& which, const double* w, Index begin, Index end, double* out, Monitor& monitor) override {
    const int outputs = static_cast<int>(which.size()), size = features_ + 1;
    const Packed<Real> weights = packed(w, outputs);
    const Index start = begin / panel_rows * panel_rows;
    const std::size_t tasks = static_cast<std::size_t>((end - start + slot_rows_ - 1) / slot_rows_);
    pool_->run(
        tasks,
        [&](std::size_t task, int thread) {
          Local& mine = local_[thread];
          const Index from = start + static_cast<Index>(task) * slot_rows_;
          each_panel(from, std::min(from + slot_rows_, size_up_to(end)), [&](Index first, int rows) {
            const Real* panel = features_of(mine, first, rows);
            Real* f = mine.values.reserve(static_cast<std::size_t>(outputs) * panel_rows);
            dispatch<PanelProduct<Real>>(&weights, panel, f);
            for (Index row = std::max(first, begin); row < std::min(first + rows, end); ++row)
              for (int o = 0; o < outputs; ++o)
                out[(row - begin) * outputs + o] = static_cast<double>(f[o * panel_rows + row - first]) + w[o * size + features_];
          });
        },
        monitor);
  }

  void features_at(const Index* rows, Index count, double* out, Monitor& monitor) override {
    Local& mine = local_[0];
    Index done = -1;
    const Real* panel = nullptr;
    for (Index i = 0; i < count; ++i) {
      const Index first = rows[i] / panel_rows * panel_rows;
      if (first != done) {
        panel = features_of(mine, first, static_cast<int>(std::min<Index>(panel_rows, size() - first)));
        done = first;
        monitor.poll();
      }
      for (int k = 0; k < features_; ++k) out[i * features_ + k] = static_cast<double>(panel[k * panel_rows + rows[i] - first]);
    }
  }

 private:
  static constexpr std::size_t pulled_rows = 128;  // at a time
  static constexpr Index wide = 64;
  static constexpr std::size_t most_packed = std::size_t(1) << 28;  // bytes of rows that are kept packed
  static constexpr int few_inputs = 512;  // up to which rows with few nonzeros are summed as dense ones

  // Kernel values of panels of rows against all vectors, computed in K.
  template <class K>
  struct PanelKernel {
    std::unique_ptr<KernelBlocks<K>> blocks;
    std::vector<PackedLeft<K>> lefts;

    void look(std::unique_ptr<KernelBlocks<K>> values, const Rows& z) {
      blocks = std::move(values);
      const Index chunk = blocks->chunk(z.width);
      std::vector<Index> ids(z.size);
      std::iota(ids.begin(), ids.end(), Index(0));
      lefts = std::vector<PackedLeft<K>>((z.size + chunk - 1) / chunk);
      for (std::size_t c = 0; c < lefts.size(); ++c) {
        const Index first = static_cast<Index>(c) * chunk;
        blocks->prepare(z, ids.data() + first, static_cast<int>(std::min(chunk, z.size - first)), lefts[c]);
      }
    }
    // out[j][row], of the rows with these numbers; they may be in the strip already.
    void evaluate(const Rows& x, const Index* ids, int count, BlockScratch<K>& scratch, K* out) const {
      scratch.strip.count = 0;
      evaluate(x, ids, count, scratch.strip, scratch, out);
    }
    void evaluate(const Rows& x, const Index* ids, int count, PackedStrip<K>& strip, BlockScratch<K>& scratch, K* out) const {
      if (strip.count != count) blocks->pack(x, ids, count, strip);
      for (const PackedLeft<K>& left : lefts) {
        K* rows[512];
        for (int i = 0; i < left.count; ++i) rows[i] = out + static_cast<std::size_t>(i) * panel_rows;
        blocks->evaluate(left, left.count, strip, x.width, 0, count, rows, scratch);
        // Whole vectors are written: what is beyond the last row may be anything, NaN too, and is multiplied by 0 later on.
        for (int i = 0; i < left.count && count < panel_rows; ++i) std::fill(rows[i] + count, rows[i] + panel_rows, K(0));
        out += static_cast<std::size_t>(left.count) * panel_rows;
      }
    }
  };

  struct Local {
    BlockScratch<Real> scratch;
    BlockScratch<double> scratch_double;
    Buffer<double> kernel_double;
    Buffer<Real> kernel, features, values, rows, buffer, duals, pulled, inputs, row;
    std::vector<double> y, c, a, h, value;
    std::vector<int> filled;
    std::vector<Index> used;
    std::vector<Real> used_duals;
    SparseRow<Real> nonzeros;
  };

  static bool tells_slope(Slope slope) { return slope == Slope::value || slope == Slope::one_minus_squared; }
  static bool is_identity(const double* T, int rows, int columns) {
    if (rows != columns) return false;
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j)
        if (T[static_cast<std::size_t>(i) * columns + j] != (i == j)) return false;
    return true;
  }
  Index size_up_to(Index end) const { return std::min(size(), (end + panel_rows - 1) / panel_rows * panel_rows); }
  void diagonal(const Index* ids, int count, double* out) const {
    if (exact_)
      kernel_double_.blocks->diagonal(*x_, ids, count, out);
    else
      kernel_.blocks->diagonal(*x_, ids, count, out);
  }
  std::size_t panel_size() const { return static_cast<std::size_t>(features_) * panel_rows; }
  Packed<Real> packed(const double* w, int rows) const {
    Packed<Real> weights;
    weights.pack(w, rows, features_, features_ + 1, 1);
    return weights;
  }

  template <class Work>
  void over_slots(OrderedSums& sums, Monitor& monitor, Work work) {
    pool_->run(
        static_cast<std::size_t>(slots()),
        [&](std::size_t slot, int thread) {
          std::vector<double> part = sums.fresh();
          const Index begin = static_cast<Index>(slot) * slot_rows_;
          work(local_[thread], begin, std::min(size(), begin + slot_rows_), part.data());
          sums.give(slot, std::move(part));
        },
        monitor);
  }
  template <class Work>
  static void each_panel(Index begin, Index end, Work work) {
    for (Index first = begin; first < end; first += panel_rows) work(first, static_cast<int>(std::min<Index>(panel_rows, end - first)));
  }

  // Features of the panel that starts with this row, [feature][row].
  const Real* features_of(Local& mine, Index first, int rows) {
    const std::size_t panel = static_cast<std::size_t>(first / panel_rows);
    Real* features = kept_ ? store_.get() + panel * panel_size() : mine.features.reserve(panel_size());
    if (kept_ && filled_[panel]) return features;
    Index ids[panel_rows];
    for (int r = 0; r < rows; ++r) ids[r] = first + r;
    const std::size_t cells = static_cast<std::size_t>(vectors_) * panel_rows;
    Real* kernel = plain_ ? features : kernel_kept_ ? kernel_store_.get() + panel * cells : mine.kernel.reserve(cells);
    if (rows < panel_rows) std::fill(kernel, kernel + cells, Real(0));
    if (exact_) {
      double* wide = mine.kernel_double.reserve(cells);
      if (rows < panel_rows) std::fill(wide, wide + cells, 0.0);
      kernel_double_.evaluate(*x_, ids, rows, mine.scratch_double, wide);
      std::copy(wide, wide + cells, kernel);
    } else {
      if (strips_.empty())
        kernel_.evaluate(*x_, ids, rows, mine.scratch, kernel);
      else
        kernel_.evaluate(*x_, ids, rows, strips_[panel], mine.scratch, kernel);
    }
    if (!plain_) dispatch<PanelProduct<Real>>(&whitening_, static_cast<const Real*>(kernel), features);
    if (kept_) filled_[panel] = 1;
    return features;
  }

  // Sides and costs of a panel's rows, [output][row]; 0 beyond the last row.
  void meanings(Local& mine, const Which& which, Index first, int rows) const {
    const int outputs = static_cast<int>(which.size());
    mine.y.resize(static_cast<std::size_t>(outputs) * panel_rows);
    mine.c.resize(mine.y.size());
    const bool each = labels_.sides != nullptr, costs = labels_.costs != nullptr;  // given?
    const double *side = each ? labels_.sides : labels_.side.data(), *cost = costs ? labels_.costs : labels_.cost.data();
    static constexpr Index same[panel_rows] = {};
    Index at[panel_rows];
    double count[panel_rows];
    for (int r = 0; r < rows; ++r) at[r] = (each ? first + r : labels_.code(first + r)) * labels_.outputs;
    const Index* paid = each && !costs ? same : at;
    for (int r = 0; r < rows; ++r) count[r] = costs ? 1.0 : labels_.count(first + r);
    for (int o = 0; o < outputs; ++o) {
      double *y = mine.y.data() + o * panel_rows, *c = mine.c.data() + o * panel_rows;
      for (int r = 0; r < rows; ++r) y[r] = side[at[r] + which[o]];
      for (int r = 0; r < rows; ++r) c[r] = cost[paid[r] + which[o]] * count[r];
    }
    for (int r = rows; r < panel_rows; ++r)
      for (int o = 0; o < outputs; ++o) mine.y[o * panel_rows + r] = mine.c[o * panel_rows + r] = 0;
  }

  void losses(Local& mine, const Which& which, const Real* panel, const Packed<Real>& weights, const double* w, Index first, int rows,
              QuadraticLoss loss) const {
    const int outputs = static_cast<int>(which.size());
    Real* f = mine.values.reserve(static_cast<std::size_t>(outputs) * panel_rows);
    dispatch<PanelProduct<Real>>(&weights, panel, f);
    meanings(mine, which, first, rows);
    mine.a.resize(mine.y.size());
    mine.h.resize(mine.y.size());
    mine.value.resize(outputs);
    for (int o = 0; o < outputs; ++o)
      mine.value[o] = loss.targets ? loss_at<OfTargets>(mine, o, f, w, loss) : loss_at<OfLabels>(mine, o, f, w, loss);
  }

  template <class Read>
  double loss_at(Local& mine, int o, const Real* f, const double* w, QuadraticLoss loss) const {
    const double bias = w[static_cast<std::size_t>(o) * (features_ + 1) + features_];
    const std::size_t at = static_cast<std::size_t>(o) * panel_rows;
    return dispatch<LossAt<Real, Read>>(f + at, bias, static_cast<const double*>(mine.y.data() + at),
                                        static_cast<const double*>(mine.c.data() + at), loss, mine.a.data() + at, mine.h.data() + at);
  }

  // sum_o a_o beta_jo k'(x, z_j) of the used rows, a row for each.
  void pull_panels(Local& mine, int outputs, const Packed<Real>& coefficients, Real* by_row, int left) const {
    const std::size_t cells = static_cast<std::size_t>(vectors_) * panel_rows;
    Real* slope = mine.kernel.reserve(cells);
    Real* duals = mine.duals.reserve(static_cast<std::size_t>(outputs) * panel_rows);
    for (std::size_t from = 0; from < mine.used.size(); from += panel_rows) {
      const int rows = static_cast<int>(std::min<std::size_t>(panel_rows, mine.used.size() - from));
      if (rows < panel_rows) std::fill(slope, slope + cells, Real(0));
      slope_.evaluate(*x_, mine.used.data() + from, rows, mine.scratch, slope);
      for (int o = 0; o < outputs; ++o)
        for (int r = 0; r < panel_rows; ++r) duals[o * panel_rows + r] = r < rows ? mine.used_duals[(from + r) * outputs + o] : Real(0);
      pull_panel(mine, coefficients, duals, slope, by_row + from * left, left);
    }
  }

  // The same of a whole panel whose kernel values are kept; those of its rows that are used, from `before` on, go to by_row.
  void pull_kept(Local& mine, int outputs, const Packed<Real>& coefficients, Index first, std::size_t before, Real* by_row, int left) const {
    Real* duals = mine.duals.reserve(static_cast<std::size_t>(outputs) * panel_rows);
    for (int k = 0; k < outputs * panel_rows; ++k) duals[k] = static_cast<Real>(mine.a[k]);
    const Real* slope = kernel_store_.get() + static_cast<std::size_t>(first / panel_rows) * vectors_ * panel_rows;
    Real* turned = mine.rows.reserve(static_cast<std::size_t>(panel_rows) * left);
    pull_panel(mine, coefficients, duals, slope, turned, left);
    for (std::size_t u = before; u < mine.used.size(); ++u)
      std::copy_n(turned + static_cast<std::size_t>(mine.used[u] - first) * left, left, by_row + u * left);
  }

  void pull_panel(Local& mine, const Packed<Real>& coefficients, const Real* duals, const Real* slope, Real* by_row, int left) const {
    const std::size_t cells = static_cast<std::size_t>(vectors_) * panel_rows;
    Real* pulled = mine.pulled.reserve(cells);
    if (coefficients.lengths[0] == 1) {
      dispatch<PullOne<Real>>(static_cast<const Real*>(coefficients.data.get()), duals, slope, squared_, vectors_, pulled);
    } else {
      dispatch<PanelProduct<Real>>(&coefficients, duals, pulled);
      dispatch<TimesSlope<Real>>(slope, squared_, cells, pulled);
    }
    for (int r = 0; r < panel_rows; ++r) std::fill(by_row + r * left + vectors_, by_row + (r + 1) * left, Real(0));
    dispatch<ToRows<Real>>(static_cast<const Real*>(pulled), vectors_, by_row, left);
  }

  // What the used rows add to the sums of `pull`.
  void add_pulled(Local& mine, const Real* by_row, int left, int right, double* table, double* squares) const {
    const int inputs = static_cast<int>(x_->width), rows = static_cast<int>(mine.used.size());
    if (right == 0) return pull_listed(mine, by_row, left, table, squares);
    Real* x = mine.inputs.reserve(static_cast<std::size_t>(pulled_rows) * right);
    for (int r = 0; r < rows; ++r) {
      Real* row = x + static_cast<std::size_t>(r) * right;
      x_->copy(mine.used[r], row);
      std::fill(row + inputs, row + right, Real(0));
      if (squares)
        dispatch<AddSquares<Real>>(static_cast<const Real*>(row), total_of(by_row + static_cast<std::size_t>(r) * left), inputs, squares);
    }
    dispatch<SumOverRows<Real>>(by_row, left, static_cast<const Real*>(x), right, rows, vectors_, inputs, table, right, false);
  }

  // From sums over rows as they are packed, x - s, to those over x.
  void unshift(double* products, double* squares) const {
    const std::size_t inputs = static_cast<std::size_t>(x_->width);
    for (std::size_t k = 0; k < inputs; ++k) {
      const double s = x_->offset(static_cast<Index>(k));
      if (s == 0) continue;
      double sum = 0, mass = 0;
      for (int j = 0; j < vectors_; ++j) {
        double* row = products + static_cast<std::size_t>(j) * (inputs + 1);
        sum += row[k];
        mass += row[inputs];
        row[k] += s * row[inputs];
      }
      if (squares) squares[k] += s * (2 * sum + s * mass);
    }
  }

  double total_of(const Real* weights) const { return dispatch<SumRow<Real>>(weights, vectors_); }

  void pull_listed(Local& mine, const Real* by_row, int left, double* table, double* squares) const {
    for (std::size_t r = 0; r < mine.used.size(); ++r) {
      const Real* weight = by_row + r * left;
      const double sum = total_of(weight);
      x_->nonzeros(mine.used[r], mine.nonzeros);
      for (std::size_t p = 0; p < mine.nonzeros.count; ++p) {
        const double v = mine.nonzeros.values[p];
        const std::size_t column = static_cast<std::size_t>(mine.nonzeros.columns[p]);
        dispatch<AddRow<Real>>(weight, v, vectors_, table + column * vectors_);
        if (squares) squares[column] += sum * v * v;
      }
    }
  }

  std::size_t keep_;
  std::vector<Local> local_;
  PanelKernel<Real> kernel_, slope_;
  PanelKernel<double> kernel_double_;
  Packed<Real> whitening_;
  bool plain_ = false, sparse_ = false, exact_ = false, squared_ = false, kept_ = false, kernel_kept_ = false;
  Buffer<Real> store_, kernel_store_;
  std::vector<PackedStrip<Real>> strips_;
  std::type_index kind_ = typeid(void);  // of the kernel
  std::vector<char> filled_;
};

}  // namespace slimsvm
