// Rows of a compressed sparse matrix.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "rows/rows.hpp"

namespace slimsvm {

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
  Index longest_row() const override {
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
