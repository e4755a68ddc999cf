// The solver over a box, compiled.
#include "smo/solve_in.hpp"

namespace slimsvm {

template Solution solve_in<Box>(KernelMatrices&, const std::vector<int>&, Problem, const Options&, bool, WarmStart, SolverMonitor&);

}  // namespace slimsvm
