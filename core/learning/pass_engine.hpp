// What all passes share: features, labels and losses of panels of rows, slots of rows for threads.
//
// Rows are split into slots by their number alone, and sums of slots are added in a fixed order: the same bits whatever the
// number of threads.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "cpu/threads.hpp"
#include "learning/ordered_sums.hpp"
#include "learning/panel_features.hpp"
#include "learning/passes.hpp"

namespace slimsvm {

// Work space of one thread, and what it found for the panel at hand.
template <class Real>
struct PassScratch {
  FeatureScratch<Real> features;
  Buffer<Real> values, rows, buffer, duals, slopes, pulled, inputs;
  std::vector<double> y, c, a, h, loss;  // sides, costs, duals and curvatures, [output][row]; losses of the outputs
  std::vector<int> filled;
  std::vector<Index> used;
  std::vector<Real> used_duals;
  SparseRow<Real> nonzeros;
};

template <class Real>
class PassEngine {
 public:
  using Scratch = PassScratch<Real>;

  PassEngine(std::shared_ptr<Rows> x, Labels labels, int threads, std::size_t keep) : x_(std::move(x)), labels_(std::move(labels)), features_(keep) {
    constexpr Index many = 32;
    const Index least = 256 + 60 * (labels_.outputs - 1);  // sums of many outputs cost more to add up
    slot_rows_ = std::max((least + panel_rows - 1) / panel_rows * panel_rows, ((x_->size + many - 1) / many + panel_rows - 1) / panel_rows * panel_rows);
    pool_ = std::make_unique<ThreadPool>(1);
    use_threads(threads);
  }

  const Rows& rows() const { return *x_; }
  const Labels& labels() const { return labels_; }
  PanelFeatures<Real>& features() { return features_; }
  const PanelFeatures<Real>& features() const { return features_; }
  ThreadPool& pool() { return *pool_; }
  Scratch& scratch(int thread) { return scratch_[static_cast<std::size_t>(thread)]; }
  Index size() const { return x_->size; }
  Index slot_rows() const { return slot_rows_; }
  int slots() const { return static_cast<int>((size() + slot_rows_ - 1) / slot_rows_); }

  void use_threads(int threads) {
    threads = std::min(threads, std::max(1, slots()));
    if (threads != pool_->size()) pool_ = std::make_unique<ThreadPool>(threads);
    scratch_.resize(static_cast<std::size_t>(pool_->size()));
  }
  void set_features(std::shared_ptr<Rows> x, const AnyKernel& kernel, const Rows& z, const double* T, int features) {
    const bool known_rows = x_->is_same(*x);
    x_ = std::move(x);
    features_.set(*x_, known_rows, kernel, z, T, features);
  }

  // work(scratch, begin, end, sums) for each slot of rows.
  template <class Work>
  void over_slots(OrderedSums& sums, Monitor& monitor, Work work) {
    pool_->run(
        static_cast<std::size_t>(slots()),
        [&](std::size_t slot, int thread) {
          std::vector<double> part = sums.fresh();
          const Index begin = static_cast<Index>(slot) * slot_rows_;
          work(scratch(thread), begin, std::min(size(), begin + slot_rows_), part.data());
          sums.give(slot, std::move(part));
        },
        monitor);
  }
  // work(first row, rows) for each panel.
  template <class Work>
  static void each_panel(Index begin, Index end, Work work) {
    for (Index first = begin; first < end; first += panel_rows) work(first, static_cast<int>(std::min<Index>(panel_rows, end - first)));
  }

  const Real* panel(Scratch& mine, Index first, int rows) { return features_.panel(mine.features, first, rows); }

  // Weights as the left side of products with panels.
  PackedMatrix<Real> packed(const double* w, int rows) const {
    PackedMatrix<Real> weights;
    weights.pack(w, rows, features_.count(), features_.count() + 1, 1);
    return weights;
  }

  // Values of the outputs without bias, [output][row].
  const Real* values(Scratch& mine, const PackedMatrix<Real>& weights, const Real* panel) const {
    Real* f = mine.values.reserve(static_cast<std::size_t>(weights.rows) * panel_rows);
    dispatch<PanelProduct<Real>>(&weights, panel, f);
    return f;
  }

  // Losses, duals and curvatures of a panel's rows.
  void losses(Scratch& mine, const OutputIds& ids, const Real* panel, const PackedMatrix<Real>& weights, const double* w, Index first, int rows,
              QuadraticLoss loss) const {
    const int outputs = static_cast<int>(ids.size());
    const Real* f = values(mine, weights, panel);
    labels_.of_panel(ids, first, rows, mine.y, mine.c);
    mine.a.resize(mine.y.size());
    mine.h.resize(mine.y.size());
    mine.loss.resize(outputs);
    for (int o = 0; o < outputs; ++o)
      mine.loss[o] = loss.targets ? loss_at<TargetLoss>(mine, o, f, w, loss) : loss_at<LabelLoss>(mine, o, f, w, loss);
  }

 private:
  template <class Loss>
  double loss_at(Scratch& mine, int o, const Real* f, const double* w, QuadraticLoss loss) const {
    const double bias = w[static_cast<std::size_t>(o) * (features_.count() + 1) + features_.count()];
    const std::size_t at = static_cast<std::size_t>(o) * panel_rows;
    return dispatch<LossAt<Real, Loss>>(f + at, bias, static_cast<const double*>(mine.y.data() + at),
                                        static_cast<const double*>(mine.c.data() + at), loss, mine.a.data() + at, mine.h.data() + at);
  }

  std::shared_ptr<Rows> x_;
  Labels labels_;
  PanelFeatures<Real> features_;
  Index slot_rows_ = 0;
  std::unique_ptr<ThreadPool> pool_;
  std::vector<Scratch> scratch_;
};

}  // namespace slimsvm
