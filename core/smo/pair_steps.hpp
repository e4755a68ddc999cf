// Pair steps on a block, compiled apart.
#pragma once

#include "smo/pairs.hpp"

namespace slimsvm {

// Until the violation inside the block is at most eps, or `limit` steps; the violation.
template <class Real>
double pair_steps(Block<Real>& b, double eps, Index limit);
extern template double pair_steps<float>(Block<float>&, double, Index);
extern template double pair_steps<double>(Block<double>&, double, Index);

}  // namespace slimsvm
