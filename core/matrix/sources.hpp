// Rows of a kernel matrix over data, and of a matrix that was given.
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "kernels/kernel.hpp"
#include "matrix/row_source.hpp"

namespace slimsvm {

// Kernel rows over data. `order` says which row of the data stands at each position.
template <class Real>
class KernelRows final : public RowSource<Real> {
 public:
  KernelRows(std::shared_ptr<const Rows> rows, std::vector<Index> order, const AnyKernel& kernel, bool sparse, int threads)
      : rows_(std::move(rows)),
        order_(std::move(order)),
        blocks_(kernel->blocks(Real(), rows_->width, sparse)),
        scratch_(threads) {}

  // Packing a strip costs as much as a few rows of kernel values: kept, it is paid once.
  std::size_t plan(const std::vector<Segment>& tiles, std::size_t budget) override {
    const std::size_t bytes = blocks_->strip_bytes(*rows_);
    if (bytes > budget) return 0;
    starts_.clear();
    strips_ = std::vector<PackedStrip<Real>>(tiles.size());
    for (std::size_t t = 0; t < tiles.size(); ++t) {
      starts_.push_back(tiles[t].begin);
      blocks_->pack(*rows_, order_.data() + tiles[t].begin, static_cast<int>(tiles[t].end - tiles[t].begin), strips_[t]);
    }
    return bytes;
  }
  int chunk() const override { return blocks_->chunk(rows_->width); }
  bool cheap() const override { return static_cast<double>(rows_->width) * rows_->density() <= 64; }
  void prepare(const Index* positions, int count) override {
    ids_.resize(count);
    for (int i = 0; i < count; ++i) ids_[i] = order_[positions[i]];
    blocks_->prepare(*rows_, ids_.data(), count, left_);
  }
  void strip(int rows, Index first, int count, Real* const* out, int thread) override {
    BlockScratch<Real>& scratch = scratch_[thread];
    if (!strips_.empty()) {
      const auto t = std::upper_bound(starts_.begin(), starts_.end(), first) - starts_.begin() - 1;
      return blocks_->evaluate(left_, rows, strips_[t], rows_->width, static_cast<int>(first - starts_[t]), count, out, scratch);
    }
    constexpr int part = 128;  // of wide rows, no more should be packed at once
    std::vector<Real*> shifted(out, out + rows);
    for (int c = 0; c < count; c += part) {
      const int columns = std::min(part, count - c);
      blocks_->pack(*rows_, order_.data() + first + c, columns, scratch.strip);
      blocks_->evaluate(left_, rows, scratch.strip, rows_->width, 0, columns, shifted.data(), scratch);
      for (Real*& p : shifted) p += part;
    }
  }
  bool gather(int rows, const Index* columns, int count, Real* const* out, int thread) override {
    std::vector<Index> ids(count);
    for (int j = 0; j < count; ++j) ids[j] = order_[columns[j]];
    BlockScratch<Real>& scratch = scratch_[thread];
    blocks_->pack(*rows_, ids.data(), count, scratch.strip);
    blocks_->evaluate(left_, rows, scratch.strip, rows_->width, 0, count, out, scratch);
    return true;
  }
  void diagonal(double* out) const override {
    blocks_->diagonal(*rows_, order_.data(), static_cast<Index>(order_.size()), out);
  }
  Rounding rounding() const override { return blocks_->rounding(*rows_, order_.data(), static_cast<Index>(order_.size())); }

 private:
  std::shared_ptr<const Rows> rows_;
  std::vector<Index> order_, ids_;
  std::unique_ptr<KernelBlocks<Real>> blocks_;
  PackedLeft<Real> left_;
  std::vector<BlockScratch<Real>> scratch_;
  std::vector<Index> starts_;
  std::vector<PackedStrip<Real>> strips_;
};

// Rows of a kernel matrix that was given.
template <class Real, class T>
class MatrixRows final : public RowSource<Real> {
 public:
  MatrixRows(const T* data, std::ptrdiff_t row_stride, std::ptrdiff_t column_stride, std::vector<Index> order)
      : data_(data), row_stride_(row_stride), column_stride_(column_stride), order_(std::move(order)) {}
  void prepare(const Index* positions, int count) override { positions_.assign(positions, positions + count); }
  void strip(int rows, Index first, int count, Real* const* out, int) override {
    for (int i = 0; i < rows; ++i) {
      const T* row = data_ + order_[positions_[i]] * row_stride_;
      for (int j = 0; j < count; ++j) out[i][j] = static_cast<Real>(row[order_[first + j] * column_stride_]);
    }
  }
  bool gather(int rows, const Index* columns, int count, Real* const* out, int) override {
    for (int i = 0; i < rows; ++i) {
      const T* row = data_ + order_[positions_[i]] * row_stride_;
      for (int j = 0; j < count; ++j) out[i][j] = static_cast<Real>(row[order_[columns[j]] * column_stride_]);
    }
    return true;
  }
  void diagonal(double* out) const override {
    for (std::size_t i = 0; i < order_.size(); ++i) out[i] = data_[order_[i] * (row_stride_ + column_stride_)];
  }
  Rounding rounding() const override { return {sizeof(T) <= sizeof(Real) ? 0.0 : std::numeric_limits<double>::infinity()}; }

 private:
  const T* data_;
  std::ptrdiff_t row_stride_, column_stride_;
  std::vector<Index> order_, positions_;
};

}  // namespace slimsvm
