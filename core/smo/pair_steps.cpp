#include "smo/pair_steps.hpp"

namespace slimsvm {

template <class Real>
double pair_steps(Block<Real>& b, double eps, Index limit) {
  if (b.capped()) return dispatch<SolveBlock<CappedPairs, Real>>(&b, eps, limit);
  if (b.power == 2) return dispatch<SolveBlock<BoxPairs, Real>>(&b, eps, limit);
  return dispatch<SolveBlock<PowerPairs, Real>>(&b, eps, limit);
}

template double pair_steps<float>(Block<float>&, double, Index);
template double pair_steps<double>(Block<double>&, double, Index);

}  // namespace slimsvm
