// The kernels. Each has a file of its own with all there is to know of it; forms.hpp says what a kernel declares.
#pragma once

#include "kernels/kernel.hpp"

namespace slimsvm {

AnyKernel linear();                                             // x.z
AnyKernel gaussian(double gamma);                               // exp(-gamma |x - z|^2)
AnyKernel laplacian(double gamma);                              // exp(-gamma |x - z|_1)
AnyKernel polynomial(double gamma, double coef0, int degree);   // (gamma x.z + coef0)^degree
AnyKernel sigmoid(double gamma, double coef0);                  // tanh(gamma x.z + coef0)

}  // namespace slimsvm
