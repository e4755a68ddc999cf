// From the struct of a kernel to a `Kernel`: includes all that is compiled for each kernel, so that only its own file does.
#pragma once

#include <numeric>

#include "kernels/blocks_of.hpp"
#include "kernels/kernel.hpp"
#include "kernels/row_values.hpp"

namespace slimsvm {

template <class K>
class KernelOf final : public Kernel {
 public:
  static_assert(check_kernel<K>());
  explicit KernelOf(const K& kernel) : kernel_(kernel) {}

  std::unique_ptr<KernelBlocks<float>> blocks(float, Index width, bool sparse) const override { return blocks_of<float>(kernel_, width, sparse); }
  std::unique_ptr<KernelBlocks<double>> blocks(double, Index width, bool sparse) const override { return blocks_of<double>(kernel_, width, sparse); }

  Slope slope_kind() const override { return K::slope_kind; }
  double slope_factor() const override { return kernel_.slope_factor(); }
  std::unique_ptr<KernelBlocks<float>> slope_blocks(float, Index width, bool sparse) const override { return slopes<float>(width, sparse); }
  std::unique_ptr<KernelBlocks<double>> slope_blocks(double, Index width, bool sparse) const override { return slopes<double>(width, sparse); }

  void row_values(const double* x, const float* z, Index apart, Index count, Index width, double* values) const override {
    dispatch<RowValues<K, float>>(&kernel_, x, z, apart, count, width, values);
  }
  void row_values(const double* x, const double* z, Index apart, Index count, Index width, double* values) const override {
    dispatch<RowValues<K, double>>(&kernel_, x, z, apart, count, width, values);
  }

  double dot_product_degree() const override { return kernel_.dot_product_degree(); }
  bool blurred_in_float([[maybe_unused]] const Rows& rows) const override {
    constexpr double visible = 1e-5, unit = 0.5 * std::numeric_limits<float>::epsilon();
    if constexpr (of_differences<K>)
      return !(unit * kernel_.blur(largest_in_float(rows)) <= visible);
    else
      return false;
  }
  double float_loss(const Rows& vectors, bool sparse) const override {
    return kernel_.float_loss(largest_in_float(vectors), product_limit<float, K>(vectors.width, sparse));
  }

 private:
  template <class Real, class F>
  static std::unique_ptr<KernelBlocks<Real>> blocks_of(const F& function, Index width, bool sparse) {
    return std::make_unique<KernelBlocksOf<Real, F>>(function, width, sparse);
  }
  template <class Real>
  std::unique_ptr<KernelBlocks<Real>> slopes(Index width, bool sparse) const {
    if constexpr (K::slope_kind == Slope::function)
      return blocks_of<Real>(SlopeOf<K>(kernel_), width, sparse);
    else
      return blocks_of<Real>(kernel_, width, sparse);
  }
  static double largest_in_float(const Rows& rows) {
    std::vector<Index> ids(rows.size);
    std::iota(ids.begin(), ids.end(), Index(0));
    std::vector<float> sizes(rows.size);
    rows.sizes(ids.data(), rows.size, K::Metric::size, sizes.data());
    return sizes.empty() ? 0.0 : *std::max_element(sizes.begin(), sizes.end());
  }

  K kernel_;
};

template <class K>
AnyKernel AnyKernel::of(const K& kernel) {
  return AnyKernel(std::make_shared<KernelOf<K>>(kernel));
}

}  // namespace slimsvm
