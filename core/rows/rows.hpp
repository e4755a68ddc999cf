// Rows of input data, dense or sparse, behind one small interface: copying a few rows into a packed panel.
// Nothing else in the core knows how the data is stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpu/buffer.hpp"

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
  virtual bool is_same(const Rows&) const { return false; }
  // A row that will be asked for soon is brought nearer.
  virtual void prefetch(Index) const {}
  virtual double density() const = 0;  // share of nonzeros, estimated for dense data
  virtual Index longest_row() const { return width; }  // the most that a row can have of them
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

}  // namespace slimsvm
