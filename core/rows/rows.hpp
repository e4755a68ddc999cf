// Rows of input data, dense or sparse, behind one small interface: copying a few rows into a packed panel.
// Nothing else in the core knows how the data is stored.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "cpu/buffer.hpp"
#include "cpu/transpose.hpp"

namespace slimsvm {

// Nonzeros of one row, converted on the way out.
template <class Real>
struct SparseRow {
  std::vector<std::int32_t> columns;
  std::vector<Real> values;
  std::size_t count = 0;
  void reserve(std::size_t n) {
    if (columns.size() < n) columns.resize(n), values.resize(n);
  }
};

enum class Size { squares, absolute };  // sum of x^2, or of |x|

class Rows {
 public:
  virtual ~Rows() = default;
  Index size = 0, width = 0;

  // The row in memory, if it is there as it is: of this type, contiguous. Null otherwise.
  virtual const float* contiguous(Index, float) const { return nullptr; }
  virtual const double* contiguous(Index, double) const { return nullptr; }
  // Are these the same rows: the same numbers in memory, packed in the same way? Only dense ones can tell.
  virtual bool same(const Rows&) const { return false; }
  // A row that will be asked for soon is brought nearer.
  virtual void expect(Index) const {}
  virtual double density() const = 0;  // share of nonzeros, estimated for dense data
  virtual Index terms() const { return width; }  // the most that a row can have of them
  // What is taken out of a column before it is rounded to float.
  virtual double offset(Index) const { return 0; }
  // panel[k * stride + i] = row[ids[i]][k] for i < count, 0 for count <= i < stride.
  virtual void pack(const Index* ids, int count, int stride, float* panel) const = 0;
  virtual void pack(const Index* ids, int count, int stride, double* panel) const = 0;
  // The row as it is packed, its numbers together.
  virtual void copy(Index id, float* out) const = 0;
  virtual void copy(Index id, double* out) const = 0;
  virtual void nonzeros(Index id, SparseRow<float>& out) const = 0;
  virtual void nonzeros(Index id, SparseRow<double>& out) const = 0;
  // The size of each row, from its values as rounded to the type of `out`.
  virtual void sizes(const Index* ids, Index count, Size kind, float* out) const = 0;
  virtual void sizes(const Index* ids, Index count, Size kind, double* out) const = 0;
};

// Both value types of the interface from one template of the storage: pack_as, copy_as, nonzeros_as, sizes_as.
template <class Self>
class RowsOf : public Rows {
 public:
  void pack(const Index* ids, int count, int stride, float* panel) const override { self().pack_as(ids, count, stride, panel); }
  void pack(const Index* ids, int count, int stride, double* panel) const override { self().pack_as(ids, count, stride, panel); }
  void copy(Index id, float* out) const override { self().copy_as(id, out); }
  void copy(Index id, double* out) const override { self().copy_as(id, out); }
  void nonzeros(Index id, SparseRow<float>& out) const override { self().nonzeros_as(id, out); }
  void nonzeros(Index id, SparseRow<double>& out) const override { self().nonzeros_as(id, out); }
  void sizes(const Index* ids, Index count, Size kind, float* out) const override { self().sizes_as(ids, count, kind, out); }
  void sizes(const Index* ids, Index count, Size kind, double* out) const override { self().sizes_as(ids, count, kind, out); }

 private:
  const Self& self() const { return static_cast<const Self&>(*this); }
};

// Strided array: C or F order, float or double, in memory or mapped. `scale` (one value per column, or none) stretches the
// inputs. `shift` (the same) is subtracted before rounding to float: a translation-invariant kernel then loses no digits to a
// common offset. In double it is not, and differences are exact: see kernels.hpp.
// Adds the number of values that are not zero.
template <class T>
struct CountFilled {
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
  bool same(const Rows& other) const override {
    const auto* o = dynamic_cast<const DenseRows*>(&other);
    return o && o->data_ == data_ && o->size == size && o->width == width && o->row_stride_ == row_stride_ &&
           o->column_stride_ == column_stride_ && o->shift_ == shift_ && o->scale_ == scale_;
  }
  void expect(Index id) const override {
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
        dispatch<CountFilled<T>>(row, width, &filled);
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

// Compressed sparse rows, with 32- or 64-bit indices.
template <class T, class I>
class SparseRows final : public RowsOf<SparseRows<T, I>> {
  friend class RowsOf<SparseRows<T, I>>;
  using Rows::size, Rows::width;

 public:
  SparseRows(const T* values, const I* columns, const I* starts, Index rows, Index width_, std::vector<double> scale)
      : values_(values), columns_(columns), starts_(starts), scale_(std::move(scale)) {
    size = rows;
    width = width_;
  }
  double density() const override {
    const double cells = static_cast<double>(size) * static_cast<double>(width);
    return cells > 0 ? static_cast<double>(starts_[size] - starts_[0]) / cells : 1.0;
  }
  Index terms() const override {
    Index most = 0;
    for (Index i = 0; i < size; ++i) most = std::max(most, static_cast<Index>(starts_[i + 1] - starts_[i]));
    return most;
  }
 private:
  template <class Real>
  Real at(I p) const {
    return static_cast<Real>(scale_.empty() ? static_cast<double>(values_[p]) : static_cast<double>(values_[p]) * scale_[columns_[p]]);
  }
  template <class Real>
  void pack_as(const Index* ids, int count, int stride, Real* panel) const {
    std::fill(panel, panel + static_cast<std::size_t>(width) * stride, Real(0));
    for (int i = 0; i < count; ++i)
      for (I p = starts_[ids[i]]; p < starts_[ids[i] + 1]; ++p)
        panel[static_cast<std::size_t>(columns_[p]) * stride + i] += at<Real>(p);
  }
  template <class Real>
  void copy_as(Index id, Real* out) const {
    pack_as(&id, 1, 1, out);
  }
  template <class Real>
  void nonzeros_as(Index id, SparseRow<Real>& out) const {
    const I begin = starts_[id];
    out.count = static_cast<std::size_t>(starts_[id + 1] - begin);
    out.reserve(out.count);
    std::size_t zeros = 0;
    for (std::size_t p = 0; p < out.count; ++p) {
      out.columns[p] = static_cast<std::int32_t>(columns_[begin + p]);
      out.values[p] = at<Real>(begin + static_cast<I>(p));
      zeros += out.values[p] == Real(0);
    }
    if (zeros) drop_zeros(out);
  }
  template <class Real>
  static void drop_zeros(SparseRow<Real>& row) {
    std::size_t n = 0;
    for (std::size_t p = 0; p < row.count; ++p) {
      row.columns[n] = row.columns[p];
      row.values[n] = row.values[p];
      n += row.values[n] != Real(0);
    }
    row.count = n;
  }
  template <class Real>
  void sizes_as(const Index* ids, Index count, Size kind, Real* out) const {
    for (Index i = 0; i < count; ++i) {
      double sum = 0;
      for (I p = starts_[ids[i]]; p < starts_[ids[i] + 1]; ++p) {
        const double x = at<Real>(p);
        sum += kind == Size::squares ? x * x : std::fabs(x);
      }
      out[i] = static_cast<Real>(sum);
    }
  }

  const T* values_;
  const I* columns_;
  const I* starts_;
  std::vector<double> scale_;
};

}  // namespace slimsvm
