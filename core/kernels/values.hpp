// The matrix of kernel values between two sets of rows.
#pragma once

#include "cpu/threads.hpp"
#include "kernels/kernel.hpp"

namespace slimsvm {

// k(x, z), computed in Real, into a matrix of float or double, strips of x in parallel.
template <class Real, class Out>
void kernel_into(const AnyKernel& kernel, const Rows& x, const Rows& z, Out* out, int threads, Monitor& monitor);
extern template void kernel_into<float, float>(const AnyKernel&, const Rows&, const Rows&, float*, int, Monitor&);
extern template void kernel_into<double, float>(const AnyKernel&, const Rows&, const Rows&, float*, int, Monitor&);
extern template void kernel_into<double, double>(const AnyKernel&, const Rows&, const Rows&, double*, int, Monitor&);

}  // namespace slimsvm
