// Rows of a strided array.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "cpu/transpose.hpp"
#include "rows/rows.hpp"

namespace slimsvm {

// Adds the number of values that are not zero.
template <class T>
struct CountNonzeros {
  template <class Isa>
  static SLIM_INLINE void run(const T* row, Index width, Index* filled) {
    constexpr int N = lanes<T, Isa>;
    using V = Vec<T, N>;
    using Bits = decltype(V{} != V{});
    Bits less = {};  // each lane of a comparison is 0 or -1
    Index k = 0, sum = 0;
    for (; k + N <= width; k += N) less += load<V>(row + k) != V{};
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i) sum -= static_cast<Index>(less[i]);
    for (; k < width; ++k) sum += row[k] != T(0);
    *filled += sum;
  }
};

// Strided array: C or F order, float or double, in memory or mapped. `scale` (one value per column, or none) stretches the
// inputs. `shift` (the same) is subtracted before rounding to float: a translation-invariant kernel then loses no digits to a
// common offset. In double it is not, and differences are exact: see kernels/forms.hpp.
template <class T>
class DenseRows final : public RowsOf<DenseRows<T>> {
  friend class RowsOf<DenseRows<T>>;
  using Rows::size, Rows::width;

 public:
  DenseRows(const T* data, Index rows, Index columns, std::ptrdiff_t row_stride, std::ptrdiff_t column_stride,
            std::vector<double> shift, std::vector<double> scale)
      : data_(data), row_stride_(row_stride), column_stride_(column_stride), shift_(std::move(shift)), scale_(std::move(scale)) {
    size = rows;
    width = columns;
  }
  const T* contiguous(Index id, T) const override {
    return column_stride_ == 1 && scale_.empty() ? data_ + id * row_stride_ : nullptr;
  }
  using Rows::contiguous;
  bool is_same(const Rows& other) const override {
    const auto* o = dynamic_cast<const DenseRows*>(&other);
    return o && o->data_ == data_ && o->size == size && o->width == width && o->row_stride_ == row_stride_ &&
           o->column_stride_ == column_stride_ && o->shift_ == shift_ && o->scale_ == scale_;
  }
  void prefetch(Index id) const override {
    if (column_stride_ != 1) return;
    const T* row = data_ + id * row_stride_;
    for (Index k = 0; k < width; k += 64 / sizeof(T)) __builtin_prefetch(row + k, 0, 2);
  }
  double offset(Index column) const override { return shift_.empty() ? 0.0 : shift_[static_cast<std::size_t>(column)]; }
  double density() const override {
    if (!shift_.empty()) return 1.0;
    const Index step = std::max<Index>(1, size / 64);
    Index seen = 0, filled = 0;
    for (Index i = 0; i < size; i += step, seen += width) {
      const T* row = data_ + i * row_stride_;
      if (column_stride_ == 1)
        dispatch<CountNonzeros<T>>(row, width, &filled);
      else
        for (Index k = 0; k < width; ++k) filled += row[k * column_stride_] != T(0);
    }
    return seen ? static_cast<double>(filled) / static_cast<double>(seen) : 1.0;
  }
 private:
  template <class Real>
  Real at(const T* row, Index k) const {
    const double x = static_cast<double>(row[k * column_stride_]) * (scale_.empty() ? 1.0 : scale_[k]);
    return static_cast<Real>(shifted<Real>() ? x - shift_[k] : x);
  }
  template <class Real>
  bool shifted() const {
    return sizeof(Real) != sizeof(double) && !shift_.empty();
  }
  template <class Real>
  bool stays() const {
    return scale_.empty() && !shifted<Real>();
  }
  template <class Real>
  void pack_as(const Index* ids, int count, int stride, Real* panel) const {
    if constexpr (std::is_same_v<Real, T>)
      if (column_stride_ == 1 && !shifted<Real>() && count == stride && count % 16 == 0 && count <= 32) {
        const T* rows[32] = {};
        for (int i = 0; i < count; ++i) rows[i] = data_ + ids[i] * row_stride_;
        dispatch<PackSquares<Real>>(static_cast<const Real* const*>(rows), count, width, stride, panel);
        for (std::size_t k = 0; k < scale_.size(); ++k)
          for (int i = 0; i < count; ++i) panel[static_cast<Index>(k) * stride + i] *= static_cast<Real>(scale_[k]);
        return;
      }
    // Sixteen columns at a time, so that the lines written to stay in the first-level cache.
    constexpr Index strip = 16;
    for (Index k0 = 0; k0 < width; k0 += strip) {
      const Index k1 = std::min(k0 + strip, width);
      for (int i = 0; i < count; ++i) {
        const T* row = data_ + ids[i] * row_stride_;
        Real* out = panel + i;
        if (column_stride_ == 1 && stays<Real>())
          for (Index k = k0; k < k1; ++k) out[k * stride] = static_cast<Real>(row[k]);
        else
          for (Index k = k0; k < k1; ++k) out[k * stride] = at<Real>(row, k);
      }
      for (int i = count; i < stride; ++i)
        for (Index k = k0; k < k1; ++k) panel[k * stride + i] = Real(0);
    }
  }
  template <class Real>
  void copy_as(Index id, Real* out) const {
    const T* row = data_ + id * row_stride_;
    if (column_stride_ == 1 && stays<Real>())
      for (Index k = 0; k < width; ++k) out[k] = static_cast<Real>(row[k]);
    else
      for (Index k = 0; k < width; ++k) out[k] = at<Real>(row, k);
  }
  template <class Real>
  void nonzeros_as(Index id, SparseRow<Real>& out) const {
    out.reserve(width);
    const T* row = data_ + id * row_stride_;
    std::size_t n = 0;
    for (Index k = 0; k < width; ++k) {
      const Real x = at<Real>(row, k);
      out.columns[n] = static_cast<std::int32_t>(k);
      out.values[n] = x;
      n += x != Real(0);
    }
    out.count = n;
  }
  template <class Real>
  void sizes_as(const Index* ids, Index count, Size kind, Real* out) const {
    for (Index i = 0; i < count; ++i) {
      const T* row = data_ + ids[i] * row_stride_;
      const auto term = [&](Index k) {
        const double x = at<Real>(row, k);
        return kind == Size::squares ? x * x : std::fabs(x);
      };
      double sum[4] = {};  // four chains: a single one waits for each addition
      Index k = 0;
      for (; k + 4 <= width; k += 4)
        for (int c = 0; c < 4; ++c) sum[c] += term(k + c);
      for (; k < width; ++k) sum[0] += term(k);
      out[i] = static_cast<Real>((sum[0] + sum[1]) + (sum[2] + sum[3]));
    }
  }

  const T* data_;
  std::ptrdiff_t row_stride_, column_stride_;
  std::vector<double> shift_, scale_;
};

}  // namespace slimsvm
