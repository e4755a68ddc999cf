// Blocks of kernel values between two sets of rows: what the rest of the core asks of a kernel.
//
// The left rows are packed once (`PackedLeft`); strips of right rows then stream past them.
#pragma once

#include <algorithm>
#include <vector>

#include "cpu/buffer.hpp"
#include "kernels/forms.hpp"
#include "rows/rows.hpp"

namespace slimsvm {

// Sparse inner loop below this share of nonzeros; above it the dense tile is faster even with zeros in it.
constexpr double sparse_below = 0.3;

// Packed left rows. `panels` holds groups of `group` rows, each [column][row in group].
template <class Real>
struct PackedLeft {
  int count = 0, group = 0;
  Buffer<Real> panels;
  std::vector<std::size_t> panel_start;
  std::vector<Real> sizes;    // padded to whole groups
  std::vector<Real> largest;  // of the sizes in each group
  std::vector<Index> used;    // rows of each sparse panel
  // Sparse panels of wide data keep only the columns in use: map[panel][column] is a row of the panel, 0 = none.
  std::vector<std::vector<std::int32_t>> map;
};

// Right rows made ready: packed panels of tile columns, or their nonzeros. Worth keeping where memory allows.
template <class Real>
struct PackedStrip {
  int count = 0;
  std::vector<Real> sizes;  // padded to whole panels
  Buffer<Real> panels;
  std::vector<std::size_t> starts;
  std::vector<std::int32_t> columns;
  std::vector<Real> values;
};

// Work space of one thread.
template <class Real>
struct BlockScratch {
  PackedStrip<Real> strip;
  Buffer<Real> transposed;
  std::vector<Real> dense;  // a sparse right row over the rows of a panel; zero between uses
};

template <class Real>
class KernelBlocks {
 public:
  virtual ~KernelBlocks() = default;
  virtual void prepare(const Rows& rows, const Index* ids, int count, PackedLeft<Real>& left) const = 0;
  virtual void pack(const Rows& rows, const Index* ids, int count, PackedStrip<Real>& strip) const = 0;
  // out[i][j] = k(left i, right first + j), i < rows, j < count; first is a multiple of 32. Rows of out have
  // room for strip_padding(count) values.
  virtual void evaluate(const PackedLeft<Real>& left, int rows, const PackedStrip<Real>& right, Index width, int first, int count,
                        Real* const* out, BlockScratch<Real>& scratch) const = 0;
  virtual std::size_t strip_bytes(const Rows& rows) const = 0;  // of all rows, packed
  // k(x, x) of rows.
  virtual void diagonal(const Rows& rows, const Index* ids, Index count, double* out) const = 0;
  // No value between these rows is further than this from the kernel's.
  virtual Rounding rounding(const Rows& rows, const Index* ids, Index count) const = 0;
  // Left rows worth packing at once within a few megabytes.
  int chunk(Index width) const {
    const Index budget = Index(8) << 20;
    return static_cast<int>(std::clamp<Index>(budget / std::max<Index>(1, width * Index(sizeof(Real))), 64, 512));
  }
};

inline int strip_padding(int count) { return (count + 31) / 32 * 32; }

}  // namespace slimsvm
