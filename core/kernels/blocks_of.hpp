// Blocks of one kernel's values: the one place where kernels are evaluated.
//
// Whether s is summed by products or over differences (forms.hpp) is decided for each tile by the sizes of its rows: where one of
// two rows is small, products lose nothing that the value would show.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "kernels/blocks.hpp"
#include "kernels/dense_tile.hpp"
#include "kernels/sparse_tile.hpp"

namespace slimsvm {

template <class Real, class Kernel>
struct KernelDiagonal {
  template <class Isa>
  static SLIM_INLINE void run(const Kernel* kernel, const Real* sizes, Index count, double* out) {
    for (Index i = 0; i < count; ++i) {
      const Vec<Real, 4> size = splat<Vec<Real, 4>>(of_differences<Kernel> ? Real(0) : sizes[i]);
      out[i] = value_of_sums<Real, 4>(*kernel, size, size, size)[0];
    }
  }
};

template <class Real, class Kernel>
class KernelBlocksOf final : public KernelBlocks<Real> {
 public:
  // `sparse`: use the sparse inner loop (right rows have few nonzeros).
  KernelBlocksOf(Kernel kernel, Index width, bool sparse) : kernel_(kernel), sparse_(sparse), products_(product_limit<Real, Kernel>(width, sparse)) {
    tile_shape<Real>(tile_rows_, tile_columns_);
  }

  void prepare(const Rows& rows, const Index* ids, int count, PackedLeft<Real>& left) const override {
    const int group = sparse_ ? sparse_group<Real> : tile_rows_;
    const int groups = (count + group - 1) / group;
    left.count = count;
    left.group = group;
    left.panel_start.resize(groups);
    left.sizes.assign(static_cast<std::size_t>(groups) * group, Real(0));
    if (sparse_)
      prepare_sparse(rows, ids, left);
    else
      pack_panels(rows, ids, count, group, left.panels, left.sizes.data(), &left.panel_start);
    left.largest.resize(groups);
    for (int g = 0; g < groups; ++g)
      left.largest[g] = *std::max_element(left.sizes.begin() + g * group, left.sizes.begin() + (g + 1) * group);
  }

  void pack(const Rows& rows, const Index* ids, int count, PackedStrip<Real>& strip) const override {
    strip.count = count;
    const int panels = (count + tile_columns_ - 1) / tile_columns_;
    strip.sizes.assign(static_cast<std::size_t>(panels) * tile_columns_, Real(0));
    if (!sparse_) return pack_panels(rows, ids, count, tile_columns_, strip.panels, strip.sizes.data(), nullptr);
    strip.starts.assign(1, 0);
    strip.columns.clear();
    strip.values.clear();
    SparseRow<Real> row;
    for (int j = 0; j < count; ++j) {
      rows.nonzeros(ids[j], row);
      strip.columns.insert(strip.columns.end(), row.columns.begin(), row.columns.begin() + row.count);
      strip.values.insert(strip.values.end(), row.values.begin(), row.values.begin() + row.count);
      strip.starts.push_back(strip.values.size());
      strip.sizes[j] = size_of(row);
    }
  }

  std::size_t strip_bytes(const Rows& rows) const override {
    const double cells = static_cast<double>(rows.size) * static_cast<double>(rows.width);
    return static_cast<std::size_t>(sparse_ ? cells * rows.density() * (sizeof(Real) + 4) : cells * sizeof(Real));
  }

  void evaluate(const PackedLeft<Real>& left, int rows, const PackedStrip<Real>& right, Index width, int first, int count, Real* const* out,
                BlockScratch<Real>& scratch) const override {
    if (sparse_) return evaluate_sparse(left, rows, right, first, count, out, scratch);
    const std::size_t panel = static_cast<std::size_t>(width) * tile_columns_;
    for (int j = 0; j < count; j += tile_columns_)
      dispatch<DenseTile<Real, Kernel>>(&kernel_, &left, rows, width,
                                        static_cast<const Real*>(right.panels.get() + (first + j) / tile_columns_ * panel),
                                        right.sizes.data() + first + j, out, j, products_);
  }

  void diagonal(const Rows& rows, const Index* ids, Index count, double* out) const override {
    std::vector<Real> sizes(count);
    if constexpr (!of_differences<Kernel>) rows.sizes(ids, count, Metric::size, sizes.data());
    dispatch<KernelDiagonal<Real, Kernel>>(&kernel_, static_cast<const Real*>(sizes.data()), count, out);
  }

  Rounding rounding(const Rows& rows, const Index* ids, Index count) const override {
    std::vector<double> sizes(count);
    rows.sizes(ids, count, Metric::size, sizes.data());
    const double largest = count ? *std::max_element(sizes.begin(), sizes.end()) : 0.0;
    const Index chain = sparse_ ? rows.longest_row() / 2 + 1 : std::min(rows.width, stretch<Real> + rows.width / stretch<Real> + 1);  // of additions
    const double terms = static_cast<double>(chain), unit = 0.5 * std::numeric_limits<Real>::epsilon();
    const bool by_differences = of_differences<Kernel> && !sparse_ && (products_ == differences_only || !chooses_metric<Kernel>);
    return kernel_.rounding({largest, terms, unit, by_differences, products_});
  }

 private:
  using Metric = typename Kernel::Metric;
  static constexpr Index dense_map_limit = 2048;

  Real size_of(const SparseRow<Real>& row) const {
    if constexpr (of_differences<Kernel> || reads_sizes<Kernel>) return dispatch<SparseSize<Real, Metric>>(row.values.data(), row.count);
    return Real(0);  // no one reads it
  }

  // Dense panels of `group` rows, and the sizes of these where the kernel asks for them.
  void pack_panels(const Rows& rows, const Index* ids, int count, int group, Buffer<Real>& panels, Real* sizes,
                   std::vector<std::size_t>* starts) const {
    const std::size_t panel = static_cast<std::size_t>(rows.width) * group;
    const int groups = (count + group - 1) / group;
    Real* data = panels.reserve(panel * groups);
    for (int g = 0; g < groups; ++g) {
      if (starts) (*starts)[g] = g * panel;
      rows.pack(ids + g * group, std::min(group, count - g * group), group, data + g * panel);
      if constexpr (reads_sizes<Kernel> || chooses_metric<Kernel>)
        if (products_ != differences_only)
          dispatch<PanelSizes<Real, Metric>>(static_cast<const Real*>(data + g * panel), rows.width, group, sizes + g * group);
    }
  }

  void prepare_sparse(const Rows& rows, const Index* ids, PackedLeft<Real>& left) const {
    const int group = left.group, groups = static_cast<int>(left.panel_start.size());
    const bool mapped = rows.width > dense_map_limit;
    left.map.resize(mapped ? groups : 0);
    left.used.resize(groups);
    std::vector<SparseRow<Real>> nonzeros(left.count);
    std::size_t total = 0;
    for (int g = 0; g < groups; ++g) {
      if (mapped) left.map[g].assign(rows.width, 0);
      std::int32_t next = 1;  // panel row 0 stays zero
      for (int i = g * group; i < std::min(left.count, (g + 1) * group); ++i) {
        rows.nonzeros(ids[i], nonzeros[i]);
        left.sizes[i] = size_of(nonzeros[i]);
        for (std::size_t p = 0; mapped && p < nonzeros[i].count; ++p)
          if (std::int32_t& place = left.map[g][nonzeros[i].columns[p]]; !place) place = next++;
      }
      left.panel_start[g] = total;
      left.used[g] = mapped ? next : rows.width;
      total += static_cast<std::size_t>(left.used[g]) * group;
    }
    Real* data = left.panels.reserve(total);
    std::fill(data, data + total, Real(0));
    for (int i = 0; i < left.count; ++i) {
      Real* panel = data + left.panel_start[i / group] + i % group;
      for (std::size_t p = 0; p < nonzeros[i].count; ++p) {
        const std::int32_t column = nonzeros[i].columns[p], place = mapped ? left.map[i / group][column] : column;
        panel[static_cast<std::size_t>(place) * group] += nonzeros[i].values[p];
      }
    }
  }

  void evaluate_sparse(const PackedLeft<Real>& left, int rows, const PackedStrip<Real>& right, int first, int count, Real* const* out,
                       BlockScratch<Real>& scratch) const {
    constexpr int few = 16, G = sparse_group<Real>;
    Real* block = scratch.transposed.reserve(few * G);
    for (int row = 0, g = 0; row < rows; row += G, ++g) {
      const std::int32_t* map = left.map.empty() ? nullptr : left.map[g].data();
      const Real* panel = left.panels.get() + left.panel_start[g];
      for (int j = 0; j < count; j += few) {
        const int columns = std::min(few, count - j);
        dispatch<SparseTile<Real, Kernel>>(&kernel_, panel, map, static_cast<const Real*>(left.sizes.data() + row), &right,
                                           first + j, columns, block);
        if constexpr (of_differences<Kernel>)
          for (int c = 0; c < columns; ++c)
            if (!(kernel_.strain(std::min(left.largest[g], right.sizes[first + j + c])) <= products_))
              by_differences(panel, map, left.used[g], right, first + j + c, block + c * G, scratch.dense);
        dispatch<ScatterRows<Real>>(static_cast<const Real*>(block), out + row, std::min(G, rows - row), j);
      }
    }
  }

  // One right row, made dense over the rows of the panel for as long as it takes.
  void by_differences(const Real* panel, const std::int32_t* map, Index used, const PackedStrip<Real>& right, int row, Real* result,
                      std::vector<Real>& dense) const {
    if (static_cast<Index>(dense.size()) < used) dense.resize(used);
    using V = Vec<Real, 1>;
    V outside{};
    const auto place = [&](std::size_t p) { return map ? map[right.columns[p]] : right.columns[p]; };
    for (std::size_t p = right.starts[row]; p < right.starts[row + 1]; ++p) {
      if (map && place(p) == 0)
        outside = Kernel::Differences::step(outside, V{}, V{right.values[p]});
      else
        dense[place(p)] = right.values[p];
    }
    dispatch<SparseDifferences<Real, Kernel>>(&kernel_, panel, used, static_cast<const Real*>(dense.data()), outside[0], result);
    for (std::size_t p = right.starts[row]; p < right.starts[row + 1]; ++p) dense[place(p)] = Real(0);
  }

  Kernel kernel_;
  bool sparse_;
  int tile_rows_, tile_columns_;
  double products_;  // strain up to which they serve
};

}  // namespace slimsvm
