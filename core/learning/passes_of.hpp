// Passes in one precision.
#pragma once

#include "learning/certificate_pass.hpp"
#include "learning/equations_pass.hpp"
#include "learning/pass_engine.hpp"
#include "learning/pullback_pass.hpp"

namespace slimsvm {

template <class Real>
class Passes final : public AnyPasses {
 public:
  Passes(std::shared_ptr<Rows> x, Labels labels, int threads, std::size_t keep) : engine_(std::move(x), std::move(labels), threads, keep) {}

  int outputs() const override { return engine_.labels().outputs; }
  int features() const override { return engine_.features().count(); }
  int vectors() const override { return engine_.features().vectors(); }
  Index size() const override { return engine_.size(); }
  Index inputs() const override { return engine_.rows().width; }

  void use_threads(int threads) override { engine_.use_threads(threads); }
  void set_features(std::shared_ptr<Rows> x, const AnyKernel& kernel, const Rows& z, const double* T, int features) override {
    engine_.set_features(std::move(x), kernel, z, T, features);
  }
  void equations(const OutputIds& ids, const double* w, QuadraticLoss loss, double* value, double* moments, double* grams, Monitor& monitor) override {
    equations_pass(engine_, ids, w, loss, value, moments, grams, monitor);
  }
  void line(const OutputIds& ids, const double* w, const double* step, const double* t, int tries, QuadraticLoss loss, double* first,
            double* second, Monitor& monitor) override {
    line_pass(engine_, ids, w, step, t, tries, loss, first, second, monitor);
  }
  void pullback(const OutputIds& ids, const double* w, const double* beta, QuadraticLoss loss, double* value, double* products, double* squares,
                Monitor& monitor) override {
    PullbackPass<Real>(engine_, ids, beta, squares != nullptr).run(w, loss, value, products, squares, monitor);
  }
  void certificate(const OutputIds& ids, const double* w, QuadraticLoss loss, const std::vector<KnownDuals>& known, const double* reach,
                   double units, double* out, Monitor& monitor) override {
    if (loss.targets)
      certificate_pass<TargetLoss>(engine_, ids, w, loss, known, reach, units, out, monitor);
    else
      certificate_pass<LabelLoss>(engine_, ids, w, loss, known, reach, units, out, monitor);
  }

  void values(const OutputIds& ids, const double* w, Index begin, Index end, double* out, Monitor& monitor) override {
    const int outputs = static_cast<int>(ids.size()), features = this->features(), size = features + 1;
    const PackedMatrix<Real> weights = engine_.packed(w, outputs);
    const Index start = begin / panel_rows * panel_rows, slot_rows = engine_.slot_rows();
    const Index last = std::min(engine_.size(), (end + panel_rows - 1) / panel_rows * panel_rows);
    const std::size_t tasks = static_cast<std::size_t>((end - start + slot_rows - 1) / slot_rows);
    engine_.pool().run(
        tasks,
        [&](std::size_t task, int thread) {
          PassScratch<Real>& mine = engine_.scratch(thread);
          const Index from = start + static_cast<Index>(task) * slot_rows;
          engine_.each_panel(from, std::min(from + slot_rows, last), [&](Index first, int rows) {
            const Real* f = engine_.values(mine, weights, engine_.panel(mine, first, rows));
            for (Index row = std::max(first, begin); row < std::min(first + rows, end); ++row)
              for (int o = 0; o < outputs; ++o)
                out[(row - begin) * outputs + o] = static_cast<double>(f[o * panel_rows + row - first]) + w[o * size + features];
          });
        },
        monitor);
  }

  void features_at(const Index* rows, Index count, double* out, Monitor& monitor) override {
    PassScratch<Real>& mine = engine_.scratch(0);
    const int features = this->features();
    Index done = -1;
    const Real* panel = nullptr;
    for (Index i = 0; i < count; ++i) {
      const Index first = rows[i] / panel_rows * panel_rows;
      if (first != done) {
        panel = engine_.panel(mine, first, static_cast<int>(std::min<Index>(panel_rows, size() - first)));
        done = first;
        monitor.poll();
      }
      for (int k = 0; k < features; ++k) out[i * features + k] = static_cast<double>(panel[k * panel_rows + rows[i] - first]);
    }
  }

 private:
  PassEngine<Real> engine_;
};

template <class Real>
std::unique_ptr<AnyPasses> make_passes(std::shared_ptr<Rows> x, Labels labels, int threads, std::size_t keep) {
  return std::make_unique<Passes<Real>>(std::move(x), std::move(labels), threads, keep);
}

}  // namespace slimsvm
