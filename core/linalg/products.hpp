// Products of matrices of any layout, on as many threads as are given: BLAS would take its own.
//
// A product is cut into tasks in the same way whatever the threads, and each number is summed in the same order. Few
// columns are dots along rows, or sums of rows; all others are packed into register tiles, depth by depth.
#pragma once

#include "cpu/threads.hpp"
#include "linalg/matrix_view.hpp"

namespace slimsvm {

// out = a b, or what `how` says. `lower`: only numbers on and below the diagonal count.
template <class Real>
void multiply(MatrixView<const Real> a, MatrixView<const Real> b, MatrixView<Real> out, Store how, ThreadPool& pool, Monitor& monitor,
              bool lower = false);
extern template void multiply<float>(MatrixView<const float>, MatrixView<const float>, MatrixView<float>, Store, ThreadPool&, Monitor&, bool);
extern template void multiply<double>(MatrixView<const double>, MatrixView<const double>, MatrixView<double>, Store, ThreadPool&, Monitor&, bool);

}  // namespace slimsvm
