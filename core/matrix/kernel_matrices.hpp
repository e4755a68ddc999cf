// The kernel matrix of a training set in both precisions.
#pragma once

#include <memory>
#include <vector>

#include "matrix/kernel_matrix.hpp"

namespace slimsvm {

// Each precision is made when it is first needed, and kept from one problem to the next.
class KernelMatrices {
 public:
  virtual ~KernelMatrices() = default;
  virtual KernelMatrix<float>& in_float() = 0;
  virtual KernelMatrix<double>& in_double() = 0;
  virtual void release_float() = 0;  // and the memory of its cache
  // Rows of some of the positions only; null where rows cannot be had so.
  virtual std::unique_ptr<KernelMatrix<float>> subset(const std::vector<Index>&) { return nullptr; }

  double dot_product_degree = 0;  // of the kernel: see kernels/forms.hpp
};

}  // namespace slimsvm
