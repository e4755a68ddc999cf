// Labels of rows: what they are to each binary problem (an output).
#pragma once

#include <vector>

#include "learning/panels.hpp"

namespace slimsvm {

using OutputIds = std::vector<int>;

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

  // Sides and costs of the outputs in a panel of rows, [output][row]; 0 beyond the last row.
  void of_panel(const OutputIds& outputs_asked, Index first, int rows, std::vector<double>& sides_out, std::vector<double>& costs_out) const {
    const int count_asked = static_cast<int>(outputs_asked.size());
    sides_out.resize(static_cast<std::size_t>(count_asked) * panel_rows);
    costs_out.resize(sides_out.size());
    const bool each = sides != nullptr, paid_each = costs != nullptr;  // given for each row?
    const double *all_sides = each ? sides : side.data(), *all_costs = paid_each ? costs : cost.data();
    static constexpr Index same[panel_rows] = {};
    Index at[panel_rows];
    double counted[panel_rows];
    for (int r = 0; r < rows; ++r) at[r] = (each ? first + r : code(first + r)) * outputs;
    const Index* paid = each && !paid_each ? same : at;
    for (int r = 0; r < rows; ++r) counted[r] = paid_each ? 1.0 : count(first + r);
    for (int o = 0; o < count_asked; ++o) {
      double *y = sides_out.data() + o * panel_rows, *c = costs_out.data() + o * panel_rows;
      for (int r = 0; r < rows; ++r) y[r] = all_sides[at[r] + outputs_asked[o]];
      for (int r = 0; r < rows; ++r) c[r] = all_costs[paid[r] + outputs_asked[o]] * counted[r];
    }
    for (int r = rows; r < panel_rows; ++r)
      for (int o = 0; o < count_asked; ++o) sides_out[o * panel_rows + r] = costs_out[o * panel_rows + r] = 0;
  }
};

}  // namespace slimsvm
