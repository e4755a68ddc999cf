// Newton's method over passes: many binary problems with a piecewise quadratic loss, side by side, wherever the rows are.
//
//   min_{w,b}  1/2 |w|^2 + sum_i c_i loss(1 - y_i (p_i.w + b))
#pragma once

#include <vector>

#include "learning/passes.hpp"

namespace slimsvm {

struct NewtonResult {
  std::vector<double> V;  // outputs x features + 1, the bias last
  std::vector<int> steps;
  std::vector<char> converged;
  bool exact = true;  // no digits of a step were lost
};

// `bias_curvature`: of each output, a small curvature that holds the bias where no row is curved.
NewtonResult newton_over_passes(AnyPasses& passes, const OutputIds& ids, std::vector<double> start, const double* bias_curvature,
                                QuadraticLoss loss, double tol, int max_steps, Monitor& monitor);

}  // namespace slimsvm
