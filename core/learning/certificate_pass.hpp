// The pass of a certificate: sums over rows that bound the objective from both sides.
#pragma once

#include <algorithm>
#include <cmath>

#include "learning/pass_engine.hpp"

namespace slimsvm {

template <class Loss, class Real>
void certificate_pass(PassEngine<Real>& engine, const OutputIds& ids, const double* w, QuadraticLoss given, const std::vector<KnownDuals>& known,
                      const double* reach, double units, double* out, Monitor& monitor) {
  const Loss loss(given);
  const int features = engine.features().count(), outputs = static_cast<int>(ids.size()), size = features + 1;
  const std::size_t own = certificate_sums + 2 * static_cast<std::size_t>(features);
  const PackedMatrix<Real> weights = engine.packed(w, outputs);
  OrderedSums sums(engine.slots(), own * outputs);
  engine.over_slots(sums, monitor, [&](PassScratch<Real>& mine, Index begin, Index end, double* sum) {
    std::vector<Index> next(outputs, 0);
    for (int o = 0; o < outputs && !known.empty(); ++o)
      next[o] = std::lower_bound(known[o].rows, known[o].rows + known[o].count, begin) - known[o].rows;
    const int room = room_for<Real>(size);
    mine.rows.reserve(static_cast<std::size_t>(panel_rows) * room);
    engine.each_panel(begin, end, [&](Index first, int rows) {
      const Real* panel = engine.panel(mine, first, rows);
      engine.losses(mine, ids, panel, weights, w, first, rows, given);
      Index row_ids[panel_rows];
      double sizes[panel_rows];
      for (int r = 0; r < rows; ++r) row_ids[r] = first + r;
      engine.features().diagonal(row_ids, rows, sizes);
      bool turned = false;
      for (int o = 0; o < outputs; ++o) {
        double *to = sum + o * own, *a = mine.a.data() + o * panel_rows;
        const double *y = mine.y.data() + o * panel_rows, *c = mine.c.data() + o * panel_rows;
        for (; !known.empty() && next[o] < known[o].count && known[o].rows[next[o]] < first + rows; ++next[o])
          a[known[o].rows[next[o]] - first] = known[o].duals[next[o]];
        to[loss_value] += mine.loss[o];
        const double bias = w[static_cast<std::size_t>(o) * size + features];
        for (int r = 0; r < rows; ++r) {
          if (c[r] == 0) continue;
          const double xi = Loss::residual(y[r], static_cast<double>(mine.values.get()[o * panel_rows + r]) + bias);
          // An error of the decision value costs what the dual says; at the corners of a loss more, and never less.
          const double error = Loss::worst(xi, units * (std::sqrt(std::fabs(sizes[r])) * reach[o] + std::fabs(bias)) + Loss::rounding(units));
          to[loss_error] += c[r] * (loss.value(xi + error) - loss.value(xi)) - Loss::side(y[r]) * a[r] * error;
          if (a[r] == 0) continue;
          const bool plus = a[r] > 0;
          to[plus ? up : down] += std::fabs(a[r]);
          to[plus ? up_gain : down_gain] += loss.gain(y[r], a[r]);
          to[plus ? up_ridge : down_ridge] += loss.width * a[r] * a[r] / c[r];
          to[squares] += a[r] * a[r];
          to[spread] += a[r] * a[r] * std::fabs(sizes[r]);
          if (!turned) dispatch<ToRows<Real>>(panel, features, mine.rows.get(), room);
          turned = true;
          dispatch<AddRow<Real>>(static_cast<const Real*>(mine.rows.get() + static_cast<std::size_t>(r) * room), a[r], features,
                                 to + certificate_sums + (plus ? 0 : features));
        }
      }
    });
    for (int o = 0; o < outputs; ++o) sum[o * own + loss_error] = std::max(0.0, sum[o * own + loss_error]);
  });
  std::copy(sums.total.begin(), sums.total.end(), out);
}

}  // namespace slimsvm
