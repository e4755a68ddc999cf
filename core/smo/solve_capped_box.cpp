// The solver over a box with a cap on the sum of sizes, compiled.
#include "smo/solve_in.hpp"

namespace slimsvm {

template Solution solve_in<CappedBox>(KernelMatrices&, const std::vector<int>&, Problem, const Options&, bool, WarmStart, SolverMonitor&);

}  // namespace slimsvm
