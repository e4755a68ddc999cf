// Kernel values of panels of rows against all vectors of a model.
#pragma once

#include <memory>
#include <numeric>
#include <vector>

#include "kernels/kernel.hpp"
#include "learning/panels.hpp"

namespace slimsvm {

// Computed in K.
template <class K>
class PanelKernel {
 public:
  void set(std::unique_ptr<KernelBlocks<K>> blocks, const Rows& vectors) {
    blocks_ = std::move(blocks);
    const Index chunk = blocks_->chunk(vectors.width);
    std::vector<Index> ids(vectors.size);
    std::iota(ids.begin(), ids.end(), Index(0));
    chunks_ = std::vector<PackedLeft<K>>((vectors.size + chunk - 1) / chunk);
    for (std::size_t c = 0; c < chunks_.size(); ++c) {
      const Index first = static_cast<Index>(c) * chunk;
      blocks_->prepare(vectors, ids.data() + first, static_cast<int>(std::min(chunk, vectors.size - first)), chunks_[c]);
    }
  }
  const KernelBlocks<K>& blocks() const { return *blocks_; }

  // out[j][row], of the rows with these numbers; they may be in the strip already.
  void evaluate(const Rows& x, const Index* ids, int count, BlockScratch<K>& scratch, K* out) const {
    scratch.strip.count = 0;
    evaluate(x, ids, count, scratch.strip, scratch, out);
  }
  void evaluate(const Rows& x, const Index* ids, int count, PackedStrip<K>& strip, BlockScratch<K>& scratch, K* out) const {
    if (strip.count != count) blocks_->pack(x, ids, count, strip);
    for (const PackedLeft<K>& left : chunks_) {
      K* rows[512];
      for (int i = 0; i < left.count; ++i) rows[i] = out + static_cast<std::size_t>(i) * panel_rows;
      blocks_->evaluate(left, left.count, strip, x.width, 0, count, rows, scratch);
      // Whole vectors are written: what is beyond the last row may be anything, NaN too, and is multiplied by 0 later on.
      for (int i = 0; i < left.count && count < panel_rows; ++i) std::fill(rows[i] + count, rows[i] + panel_rows, K(0));
      out += static_cast<std::size_t>(left.count) * panel_rows;
    }
  }

 private:
  std::unique_ptr<KernelBlocks<K>> blocks_;
  std::vector<PackedLeft<K>> chunks_;
};

}  // namespace slimsvm
