// Decision values f(x) = sum_j coef[o][j] k(z_j, x) + bias[o] of many rows, tile by tile: no matrix of all kernel values.
#pragma once

#include "cpu/threads.hpp"
#include "kernels/kernel.hpp"

namespace slimsvm {

// How far a decision value is likely to be off in float: kernel values, whose errors are independent, times coefficients.
double float_error(const AnyKernel& kernel, const Rows& vectors, const Rows& x, const double* coef, int outputs);

// out: rows x outputs. Kernel values are computed in Real.
template <class Real>
void decision(const AnyKernel& kernel, const Rows& vectors, const Rows& x, const double* coef, const double* bias,
              int outputs, double* out, ThreadPool& pool, Monitor& monitor);
extern template void decision<float>(const AnyKernel&, const Rows&, const Rows&, const double*, const double*, int, double*, ThreadPool&, Monitor&);
extern template void decision<double>(const AnyKernel&, const Rows&, const Rows&, const double*, const double*, int, double*, ThreadPool&, Monitor&);

}  // namespace slimsvm
