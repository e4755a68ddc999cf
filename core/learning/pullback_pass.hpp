// The pass of a derivative with respect to the vectors: sums over rows of a_i beta_j k'(x_i, z_j) (x_i, 1).
#pragma once

#include "learning/pass_engine.hpp"

namespace slimsvm {

// out *= k', which is what is given, or 1 - its square.
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

// out[j][row] = beta_j a_row k', for a single output.
template <class Real>
struct WeighSlopes {
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

template <class Real>
class PullbackPass {
 public:
  using Scratch = PassScratch<Real>;

  // `beta`: vectors x outputs; `scales`: are sums of M x^2 asked for?
  PullbackPass(PassEngine<Real>& engine, const OutputIds& ids, const double* beta, bool scales)
      : engine_(engine),
        features_(engine.features()),
        x_(engine.rows()),
        ids_(ids),
        outputs_(static_cast<int>(ids.size())),
        vectors_(features_.vectors()),
        inputs_(static_cast<int>(x_.width)),
        squared_(features_.slope_kind() == Slope::one_minus_squared),
        scales_(scales) {
    listed_ = features_.sparse() && inputs_ > few_inputs;
    left_ = room_for<Real>(vectors_);
    right_ = listed_ ? 0 : room_for<Real>(inputs_);
    table_ = outputs_;
    masses_ = table_ + (listed_ ? static_cast<std::size_t>(inputs_) * vectors_ : static_cast<std::size_t>(left_) * right_);
    squares_ = masses_ + vectors_;
    coefficients_.pack(beta, vectors_, outputs_, outputs_, 1);
  }

  void run(const double* w, QuadraticLoss loss, double* value, double* products, double* squares, Monitor& monitor) {
    const PackedMatrix<Real> weights = engine_.packed(w, outputs_);
    OrderedSums sums(engine_.slots(), squares_ + (scales_ ? inputs_ : 0));
    engine_.over_slots(sums, monitor, [&](Scratch& mine, Index begin, Index end, double* sum) { add_slot(mine, begin, end, weights, w, loss, sum); });
    const double* from = sums.total.data();
    std::copy(from, from + outputs_, value);
    for (int j = 0; j < vectors_; ++j) {
      double* row = products + static_cast<std::size_t>(j) * (inputs_ + 1);
      for (int k = 0; k < inputs_; ++k)
        row[k] = -from[table_ + (listed_ ? static_cast<std::size_t>(k) * vectors_ + j : static_cast<std::size_t>(j) * right_ + k)];
      row[inputs_] = -from[masses_ + j];
    }
    for (int k = 0; scales_ && k < inputs_; ++k) squares[k] = -from[squares_ + k];
    if (sizeof(Real) == sizeof(float)) unshift(products, squares);
  }

 private:
  static constexpr std::size_t together = 128;  // rows that are summed at a time
  static constexpr int few_inputs = 512;        // up to which rows with few nonzeros are summed as dense ones

  // Collects rows whose duals are not zero, and adds them up in groups.
  void add_slot(Scratch& mine, Index begin, Index end, const PackedMatrix<Real>& weights, const double* w, QuadraticLoss loss, double* sum) {
    mine.used.clear();
    mine.used_duals.clear();
    Real* by_row = mine.buffer.reserve(together * left_);
    engine_.each_panel(begin, end, [&](Index first, int rows) {
      engine_.losses(mine, ids_, engine_.panel(mine, first, rows), weights, w, first, rows, loss);
      for (int o = 0; o < outputs_; ++o) sum[o] += mine.loss[o];
      if (mine.used.size() + panel_rows > together) add_used(mine, by_row, sum);
      const std::size_t before = mine.used.size();
      for (int r = 0; r < rows; ++r) {
        bool any = false;
        for (int o = 0; o < outputs_; ++o) any |= mine.a[o * panel_rows + r] != 0;
        if (!any) continue;
        mine.used.push_back(first + r);
        if (!listed_) x_.prefetch(first + r);  // its inputs are asked for some panels later
        for (int o = 0; o < outputs_; ++o) mine.used_duals.push_back(static_cast<Real>(mine.a[o * panel_rows + r]));
      }
      if (const Real* kernel = features_.kept_kernel(first); kernel && mine.used.size() > before)
        weigh_kept(mine, kernel, first, before, by_row);
    });
    if (!mine.used.empty()) add_used(mine, by_row, sum);
  }

  void add_used(Scratch& mine, Real* by_row, double* sum) {
    if (!features_.kept_kernel(0)) weigh_computed(mine, by_row);
    for (std::size_t r = 0; r < mine.used.size(); ++r)
      dispatch<AddRow<Real>>(static_cast<const Real*>(by_row + r * left_), 1.0, vectors_, sum + masses_);
    if (listed_)
      add_listed(mine, by_row, sum + table_, scales_ ? sum + squares_ : nullptr);
    else
      add_dense(mine, by_row, sum + table_, scales_ ? sum + squares_ : nullptr);
    mine.used.clear();
    mine.used_duals.clear();
  }

  // sum_o a_o beta_jo k'(x, z_j) of the used rows, a row for each: the kernel is evaluated anew.
  void weigh_computed(Scratch& mine, Real* by_row) const {
    Real* slope = mine.slopes.reserve(features_.kernel_size());
    Real* duals = mine.duals.reserve(static_cast<std::size_t>(outputs_) * panel_rows);
    for (std::size_t from = 0; from < mine.used.size(); from += panel_rows) {
      const int rows = static_cast<int>(std::min<std::size_t>(panel_rows, mine.used.size() - from));
      features_.slopes(mine.features, mine.used.data() + from, rows, slope);
      for (int o = 0; o < outputs_; ++o)
        for (int r = 0; r < panel_rows; ++r) duals[o * panel_rows + r] = r < rows ? mine.used_duals[(from + r) * outputs_ + o] : Real(0);
      weigh_panel(mine, duals, slope, by_row + from * left_);
    }
  }

  // The same of a whole panel whose kernel values are kept; those of its rows that are used, from `before` on, go to by_row.
  void weigh_kept(Scratch& mine, const Real* kernel, Index first, std::size_t before, Real* by_row) const {
    Real* duals = mine.duals.reserve(static_cast<std::size_t>(outputs_) * panel_rows);
    for (int k = 0; k < outputs_ * panel_rows; ++k) duals[k] = static_cast<Real>(mine.a[k]);
    Real* turned = mine.rows.reserve(static_cast<std::size_t>(panel_rows) * left_);
    weigh_panel(mine, duals, kernel, turned);
    for (std::size_t u = before; u < mine.used.size(); ++u)
      std::copy_n(turned + static_cast<std::size_t>(mine.used[u] - first) * left_, left_, by_row + u * left_);
  }

  void weigh_panel(Scratch& mine, const Real* duals, const Real* slope, Real* by_row) const {
    const std::size_t cells = features_.kernel_size();
    Real* pulled = mine.pulled.reserve(cells);
    if (coefficients_.lengths[0] == 1) {
      dispatch<WeighSlopes<Real>>(static_cast<const Real*>(coefficients_.data.get()), duals, slope, squared_, vectors_, pulled);
    } else {
      dispatch<PanelProduct<Real>>(&coefficients_, duals, pulled);
      dispatch<TimesSlope<Real>>(slope, squared_, cells, pulled);
    }
    for (int r = 0; r < panel_rows; ++r) std::fill(by_row + r * left_ + vectors_, by_row + (r + 1) * left_, Real(0));
    dispatch<ToRows<Real>>(static_cast<const Real*>(pulled), vectors_, by_row, left_);
  }

  // What the used rows add to the sums over their inputs.
  void add_dense(Scratch& mine, const Real* by_row, double* table, double* squares) const {
    const int rows = static_cast<int>(mine.used.size());
    Real* x = mine.inputs.reserve(together * right_);
    for (int r = 0; r < rows; ++r) {
      Real* row = x + static_cast<std::size_t>(r) * right_;
      x_.copy(mine.used[r], row);
      std::fill(row + inputs_, row + right_, Real(0));
      if (squares)
        dispatch<AddSquares<Real>>(static_cast<const Real*>(row), total_of(by_row + static_cast<std::size_t>(r) * left_), inputs_, squares);
    }
    dispatch<SumOverRows<Real>>(by_row, left_, static_cast<const Real*>(x), right_, rows, vectors_, inputs_, table, right_, false);
  }
  // By their nonzeros: the table is transposed.
  void add_listed(Scratch& mine, const Real* by_row, double* table, double* squares) const {
    for (std::size_t r = 0; r < mine.used.size(); ++r) {
      const Real* weight = by_row + r * left_;
      const double sum = total_of(weight);
      x_.nonzeros(mine.used[r], mine.nonzeros);
      for (std::size_t p = 0; p < mine.nonzeros.count; ++p) {
        const double v = mine.nonzeros.values[p];
        const std::size_t column = static_cast<std::size_t>(mine.nonzeros.columns[p]);
        dispatch<AddRow<Real>>(weight, v, vectors_, table + column * vectors_);
        if (squares) squares[column] += sum * v * v;
      }
    }
  }
  double total_of(const Real* weights) const { return dispatch<SumRow<Real>>(weights, vectors_); }

  // From sums over rows as they are packed, x - s, to those over x.
  void unshift(double* products, double* squares) const {
    const std::size_t inputs = static_cast<std::size_t>(inputs_);
    for (std::size_t k = 0; k < inputs; ++k) {
      const double s = x_.offset(static_cast<Index>(k));
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

  PassEngine<Real>& engine_;
  const PanelFeatures<Real>& features_;
  const Rows& x_;
  const OutputIds& ids_;
  int outputs_, vectors_, inputs_;
  bool squared_, scales_, listed_ = false;
  int left_ = 0, right_ = 0;                            // room of a row of weights, and of inputs
  std::size_t table_ = 0, masses_ = 0, squares_ = 0;    // where sums of M x, M and M x^2 begin; losses are before
  PackedMatrix<Real> coefficients_;
};

}  // namespace slimsvm
