// A kernel as the rest of the core knows it: nothing there depends on which kernel it is.
#pragma once

#include <memory>
#include <typeindex>
#include <typeinfo>

#include "kernels/blocks.hpp"

namespace slimsvm {

class Kernel {
 public:
  virtual ~Kernel() = default;

  // Blocks of values for rows of this width, by the sparse inner loop if the right rows have few nonzeros. The first argument
  // says which type: a number of it.
  virtual std::unique_ptr<KernelBlocks<float>> blocks(float, Index width, bool sparse) const = 0;
  virtual std::unique_ptr<KernelBlocks<double>> blocks(double, Index width, bool sparse) const = 0;

  // How the slope follows from the value, and where it does not, blocks of slopes; the derivative is `slope_factor` times it.
  virtual Slope slope_kind() const = 0;
  virtual double slope_factor() const = 0;
  virtual std::unique_ptr<KernelBlocks<float>> slope_blocks(float, Index width, bool sparse) const = 0;
  virtual std::unique_ptr<KernelBlocks<double>> slope_blocks(double, Index width, bool sparse) const = 0;

  // values[j] = k(x, z_j) for `count` vectors that start every `apart` numbers; there is room for `register_room` values more.
  virtual void row_values(const double* x, const float* z, Index apart, Index count, Index width, double* values) const = 0;
  virtual void row_values(const double* x, const double* z, Index apart, Index count, Index width, double* values) const = 0;

  // The degree of the kernel in x.z; 0 for a function of distances.
  virtual double dot_product_degree() const = 0;
  // Do rows of this size, rounded to float, change their differences by what a kernel value would show?
  virtual bool blurred_in_float(const Rows& rows) const = 0;
  // How far a value between these vectors and other rows is usually off in float, in roundings.
  virtual double float_loss(const Rows& vectors, bool sparse) const = 0;
};

// A kernel of any kind, shared by whoever uses it.
class AnyKernel {
 public:
  // Defined for every kernel by kernel_of.hpp, which only the file of that kernel includes.
  template <class K>
  static AnyKernel of(const K& kernel);

  const Kernel* operator->() const { return kernel_.get(); }
  std::type_index kind() const { return typeid(*kernel_); }

 private:
  explicit AnyKernel(std::shared_ptr<const Kernel> kernel) : kernel_(std::move(kernel)) {}
  std::shared_ptr<const Kernel> kernel_;
};

constexpr Index register_room = 8;  // doubles of the widest vector register

}  // namespace slimsvm
