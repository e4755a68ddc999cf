// Dual problems from start to certificate.
#pragma once

#include <vector>

#include "matrix/kernel_matrices.hpp"
#include "smo/certify.hpp"
#include "smo/monitor.hpp"
#include "smo/options.hpp"

namespace slimsvm {

struct Solution {
  std::vector<double> a, product;  // duals; K a in double
  std::vector<double> diagonal;    // of K
  Certificate certificate;
  Index steps = 0, rounds = 0, rows = 0;  // rows: kernel rows computed
  bool converged = false, negative_curvature = false, used_double = false;
};

// Where to start: duals, and K times them if that is known.
struct WarmStart {
  const double *duals = nullptr, *product = nullptr;
};

// Rounds in float until no more is gained, then in double, unless `use_double`; a gradient computed afresh in double decides.
Solution solve(KernelMatrices& matrices, const std::vector<int>& segments, Problem p, const Options& options, bool use_double, WarmStart start,
               SolverMonitor& monitor);

// One of many problems over the same rows.
struct Job {
  std::vector<int> segments;
  Problem problem;
  Options options;
  WarmStart start = {};
};
struct SolvedJob {
  Solution solution;
  PrimalCertificate certified;
};

// All problems; with `certify` also the model that each makes. Small ones over rows that are all in memory are solved at the same
// time, one by each thread; others one after the other, by all threads together. The solutions do not depend on that.
std::vector<SolvedJob> solve_all(KernelMatrices& matrices, const std::vector<Job>& jobs, bool use_double, bool certify, SolverMonitor& monitor);

}  // namespace slimsvm
