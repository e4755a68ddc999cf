// Newton's method for one linear model with a piecewise quadratic loss, over few features in memory:
//
//   min_{w,b}  1/2 |w|^2 + sum_i c_i loss(1 - y_i (p_i.w + b)),   loss'(xi) = clamp(xi / width, least, most),
//
// or of targets, see `QuadraticLoss`. The squared hinge has width 1 and slopes from 0 on, the rounded hinge slopes from 0 to 1, least squares any slope.
// Learning solves thousands of such problems, each from the solution of the last: here a step costs its arithmetic only.
#pragma once

#include <vector>

#include "learning/loss.hpp"

namespace slimsvm {

struct SmoothProblem {
  const double* features;  // n x m
  int n, m;
  const double *y, *c;
  QuadraticLoss loss;
};

struct SmoothSolution {
  std::vector<double> w, f;  // w: weights, then the bias
  int steps = 0;
  bool converged = false, exact = true;  // exact: no digits of a step were lost
};

// From the weights w of the solution, which are the start; its values f have room for all rows.
void smooth_newton(const SmoothProblem& problem, double tol, int max_steps, SmoothSolution& solution);

}  // namespace slimsvm
