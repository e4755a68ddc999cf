// The pass of a Newton step: losses, moments [p 1]'a, and matrices [p 1]' diag(h) [p 1]; and that of a line search.
#pragma once

#include <cmath>

#include "learning/pass_engine.hpp"

namespace slimsvm {

template <class Real>
void equations_pass(PassEngine<Real>& engine, const OutputIds& ids, const double* w, QuadraticLoss loss, double* value, double* moments,
                    double* grams, Monitor& monitor) {
  // Rows are scaled by h^1/2 and get one more number, a h^-1/2: its products with the others are the moments.
  const int features = engine.features().count();
  const int outputs = static_cast<int>(ids.size()), size = features + 1, room = room_for<Real>(size + 1);
  const std::size_t gram = static_cast<std::size_t>(room) * room, own = 1 + size + gram;
  const PackedMatrix<Real> weights = engine.packed(w, outputs);
  OrderedSums::Parts lower;
  for (int o = 0; o < outputs; ++o) {
    lower.emplace_back(o * own, o * own + 1 + size);
    for (int i = 0; i <= size; ++i) {
      const std::size_t row = o * own + 1 + size + static_cast<std::size_t>(i) * room;
      lower.emplace_back(row, row + i + 1);
    }
  }
  OrderedSums sums(engine.slots(), own * outputs, std::move(lower));
  engine.over_slots(sums, monitor, [&](PassScratch<Real>& mine, Index begin, Index end, double* sum) {
    constexpr int most = 64;
    const std::size_t turned_size = static_cast<std::size_t>(panel_rows) * room;
    std::fill_n(mine.rows.reserve(turned_size), turned_size, Real(0));
    for (int r = 0; r < panel_rows; ++r) mine.rows.get()[static_cast<std::size_t>(r) * room + features] = Real(1);
    Real* buffer = mine.buffer.reserve(static_cast<std::size_t>(outputs) * most * room);
    mine.filled.assign(outputs, 0);
    const auto empty = [&](int o) {
      const Real* rows = buffer + static_cast<std::size_t>(o) * most * room;
      dispatch<SumOverRows<Real>>(rows, room, rows, room, mine.filled[o], size + 1, size + 1, sum + o * own + 1 + size, room, true);
      mine.filled[o] = 0;
    };
    engine.each_panel(begin, end, [&](Index first, int rows) {
      const Real* panel = engine.panel(mine, first, rows);
      engine.losses(mine, ids, panel, weights, w, first, rows, loss);
      bool turned = false;
      for (int o = 0; o < outputs; ++o) {
        double* to = sum + o * own;
        to[0] += mine.loss[o];
        const double *a = mine.a.data() + o * panel_rows, *h = mine.h.data() + o * panel_rows;
        for (int r = 0; r < rows; ++r) {
          if (a[r] == 0 && h[r] == 0) continue;
          if (!turned) dispatch<ToRows<Real>>(panel, features, mine.rows.get(), room);
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

template <class Real>
void line_pass(PassEngine<Real>& engine, const OutputIds& ids, const double* w, const double* step, const double* t, int tries,
               QuadraticLoss loss, double* first, double* second, Monitor& monitor) {
  const int features = engine.features().count(), outputs = static_cast<int>(ids.size()), size = features + 1;
  std::vector<double> both(w, w + static_cast<std::size_t>(outputs) * size);
  both.insert(both.end(), step, step + static_cast<std::size_t>(outputs) * size);
  const PackedMatrix<Real> weights = engine.packed(both.data(), 2 * outputs);
  OrderedSums sums(engine.slots(), static_cast<std::size_t>(outputs) * tries * 2);
  engine.over_slots(sums, monitor, [&](PassScratch<Real>& mine, Index begin, Index end, double* sum) {
    engine.each_panel(begin, end, [&](Index start, int rows) {
      const Real* f = engine.values(mine, weights, engine.panel(mine, start, rows));
      engine.labels().of_panel(ids, start, rows, mine.y, mine.c);
      for (int o = 0; o < outputs; ++o)
        for (int k = 0; k < tries; ++k) {
          double* to = sum + 2 * (static_cast<std::size_t>(o) * tries + k);
          const double *y = mine.y.data() + o * panel_rows, *c = mine.c.data() + o * panel_rows;
          const Real *at = f + o * panel_rows, *along = f + (outputs + o) * panel_rows;
          const double bias = both[o * size + features], bias_step = both[(outputs + o) * size + features];
          if (loss.targets)
            dispatch<LossAlong<Real, TargetLoss>>(at, along, bias, bias_step, y, c, t[o * tries + k], loss, to, to + 1);
          else
            dispatch<LossAlong<Real, LabelLoss>>(at, along, bias, bias_step, y, c, t[o * tries + k], loss, to, to + 1);
        }
    });
  });
  for (int k = 0; k < outputs * tries; ++k) first[k] = sums.total[2 * k], second[k] = sums.total[2 * k + 1];
}

}  // namespace slimsvm
