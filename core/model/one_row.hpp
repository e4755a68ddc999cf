// Decision values of one row, or of a few.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/kernel.hpp"
#include "kernels/row_values.hpp"

namespace slimsvm {

constexpr Index few_rows_limit = 4;

// Numbers on the stack as long as they are few: a call should not allocate.
class SmallArray {
 public:
  explicit SmallArray(std::size_t count) {
    if (count > few) many_.resize(count);
  }
  double* get() { return many_.empty() ? few_ : many_.data(); }

 private:
  static constexpr std::size_t few = 1024;
  double few_[few];
  std::vector<double> many_;
};

// out[o] = bias[o] + coef[o] . values
struct WeightedSums {
  template <class Isa>
  static SLIM_INLINE void run(const double* coef, const double* bias, int outputs, const double* values, Index count, double* out) {
    constexpr int N = lanes<double, Isa>;
    for (int o = 0; o < outputs; ++o) out[o] = bias[o] + RowSum<double>::sum<Dot, N>(values, coef + o * count, count);
  }
};

// All outputs of one row over vectors that lie in memory, or over none; false if they do not.
inline bool one_row(const AnyKernel& kernel, const Rows& vectors, const double* x, const double* coef, const double* bias, int outputs,
                    double* values, double* out) {
  if (vectors.size == 0) {
    std::copy(bias, bias + outputs, out);
    return true;
  }
  const auto over = [&](auto type) {
    using T = decltype(type);
    const T* z = vectors.contiguous(0, type);
    if (!z) return false;
    const Index apart = vectors.size > 1 ? vectors.contiguous(1, type) - z : 0;
    kernel->row_values(x, z, apart, vectors.size, vectors.width, values);
    return true;
  };
  if (!over(double()) && !over(float())) return false;
  dispatch<WeightedSums>(coef, bias, outputs, static_cast<const double*>(values), vectors.size, out);
  return true;
}

// The same for a few rows of any kind: packing the vectors would cost more than using them.
inline bool few_rows(const AnyKernel& kernel, const Rows& vectors, const Rows& x, const double* coef, const double* bias, int outputs, double* out) {
  if (x.size > few_rows_limit) return false;
  SmallArray row(x.width), values(vectors.size + register_room);
  for (Index i = 0; i < x.size; ++i) {
    x.pack(&i, 1, 1, row.get());
    if (!one_row(kernel, vectors, row.get(), coef, bias, outputs, values.get(), out + i * outputs)) return false;
  }
  return true;
}

}  // namespace slimsvm
