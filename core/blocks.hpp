// Blocks of kernel values between two sets of rows: the one place where kernels are evaluated.
//
// The left rows are packed once (`Left`); strips of right rows then stream past them. Two inner loops:
//  * dense: a register tile of left x right sums, like a matrix product, with the kernel fused behind it;
//  * sparse: each nonzero of a right row against a panel of left rows, made dense over the columns they use.
#pragma once

#include <cmath>
#include <memory>
#include <new>
#include <vector>

#include "kernels.hpp"
#include "rows.hpp"
#include "simd.hpp"

namespace slimsvm {

// A buffer on cache-line boundaries that does not clear what it allocates.
template <class T>
class Buffer {
 public:
  T* reserve(std::size_t count) {
    if (count > capacity_) {
      data_.reset(static_cast<T*>(::operator new(count * sizeof(T), std::align_val_t(64))));
      capacity_ = count;
    }
    return data_.get();
  }
  T* get() const { return data_.get(); }

 private:
  struct Free {
    void operator()(T* p) const { ::operator delete(p, std::align_val_t(64)); }
  };
  std::unique_ptr<T, Free> data_;
  std::size_t capacity_ = 0;
};

// Packed left rows. `panels` holds groups of `group` rows, each [column][row in group].
template <class Real>
struct Left {
  int count = 0, group = 0;
  Buffer<Real> panels;
  std::vector<std::size_t> panel_start;
  std::vector<Real> sizes;  // padded to whole groups
  // Sparse panels of wide data keep only the columns in use: map[panel][column] is a row of the panel, 0 = none.
  std::vector<std::vector<std::int32_t>> map;
};

// Right rows made ready: packed panels of tile columns, or their nonzeros. Worth keeping where memory allows.
template <class Real>
struct Strip {
  int count = 0;
  std::vector<Real> sizes;  // padded to whole panels
  Buffer<Real> panels;
  std::vector<std::size_t> starts;
  std::vector<std::int32_t> columns;
  std::vector<Real> values;
};

// Work space of one thread.
template <class Real>
struct Scratch {
  Strip<Real> strip;
  Buffer<Real> transposed;
};

template <class Real>
class KernelBlocks {
 public:
  virtual ~KernelBlocks() = default;
  virtual void prepare(const Rows& rows, const Index* ids, int count, Left<Real>& left) const = 0;
  virtual void pack(const Rows& rows, const Index* ids, int count, Strip<Real>& strip) const = 0;
  // out[i][j] = k(left i, right first + j), i < rows, j < count; first is a multiple of 32. Rows of out have
  // room for strip_padding(count) values.
  virtual void evaluate(const Left<Real>& left, int rows, const Strip<Real>& right, Index width, int first, int count,
                        Real* const* out, Scratch<Real>& scratch) const = 0;
  virtual std::size_t strip_bytes(const Rows& rows) const = 0;  // of all rows, packed
  // size(x) of rows, by the kernel's metric, from the rounded values that the sums see.
  virtual void sizes(const Rows& rows, const Index* ids, Index count, Real* out) const = 0;
  virtual void diagonal(const Real* sizes, Index count, double* out) const = 0;
  // out[i] = k(x, row i) for one row x, where all rows lie in memory as they are; false if they do not.
  virtual bool against(const Rows& rows, const Real* x, Real* out) const = 0;
  // Left rows worth packing at once within a few megabytes.
  int chunk(Index width) const {
    const Index budget = Index(8) << 20;
    return static_cast<int>(std::clamp<Index>(budget / std::max<Index>(1, width * Index(sizeof(Real))), 64, 512));
  }
};

inline int strip_padding(int count) { return (count + 31) / 32 * 32; }

template <class Real, class Kernel>
struct DenseTile {
  // `left` groups against one packed panel of `columns` right rows.
  template <class Isa>
  static SLIM_INLINE void run(const Kernel* kernel, const Left<Real>* left, int left_rows, Index width, const Real* panel,
                              const Real* right_sizes, Real* const* out, int offset) {
    constexpr int L = lanes<Real, Isa>, M = Isa::tile_rows, N = Isa::tile_vectors;
    using V = Vec<Real, L>;
    using Metric = typename Kernel::Metric;
    for (int first = 0, g = 0; first < left_rows; first += M, ++g) {
      const Real* a = left->panels.get() + left->panel_start[g];
      const Real* b = panel;
      V sum[M][N];
#pragma GCC unroll 16
      for (int i = 0; i < M; ++i)
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v) sum[i][v] = V{};
      for (Index k = 0; k < width; ++k, a += M, b += N * L) {
        V x[N];
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v) x[v] = load<V>(b + v * L);
#pragma GCC unroll 16
        for (int i = 0; i < M; ++i) {
          const V left_value = splat<V>(a[i]);
#pragma GCC unroll 4
          for (int v = 0; v < N; ++v) sum[i][v] = Metric::step(sum[i][v], left_value, x[v]);
        }
      }
      const int rows = std::min(M, left_rows - first);
#pragma GCC unroll 16
      for (int i = 0; i < M; ++i) {
        if (i >= rows) continue;
        const V size = splat<V>(left->sizes[first + i]);
        Real* to = out[first + i] + offset;
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v)
          store(to + v * L, kernel->template finish<Real, L>(sum[i][v], size, load<V>(right_sizes + v * L)));
      }
    }
  }
};

// Left rows of a sparse panel: two vectors of the widest instruction set.
template <class Real>
constexpr int sparse_group = 128 / static_cast<int>(sizeof(Real));

template <class Real, class Kernel>
struct SparseTile {
  // One panel of left rows against a few right rows given by their nonzeros; result[j][i].
  template <class Isa>
  static SLIM_INLINE void run(const Kernel* kernel, const Real* panel, const std::int32_t* map, const Real* left_sizes,
                              const Strip<Real>* right, int first, int count, Real* result) {
    constexpr int L = lanes<Real, Isa>, G = sparse_group<Real>;
    constexpr int N = std::min(G / L, 4);  // vectors kept in registers at once
    using V = Vec<Real, L>;
    using Metric = typename Kernel::Metric;
    for (int part = 0; part < G; part += N * L)
      for (int j = 0; j < count; ++j) {
        const std::size_t begin = right->starts[first + j], n = right->starts[first + j + 1] - begin;
        const std::int32_t* columns = right->columns.data() + begin;
        const Real* values = right->values.data() + begin;
        const auto at = [&](std::size_t p) {
          const std::size_t column = map ? map[columns[p]] : columns[p];
          return panel + column * G + part;
        };
        V even[N], odd[N];  // two chains hide the latency of the multiply-add
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v) even[v] = odd[v] = V{};
        std::size_t p = 0;
        for (; p + 1 < n; p += 2) {
          const Real *x0 = at(p), *x1 = at(p + 1);
          const V z0 = splat<V>(values[p]), z1 = splat<V>(values[p + 1]);
#pragma GCC unroll 4
          for (int v = 0; v < N; ++v) {
            even[v] = Metric::sparse_step(even[v], load<V>(x0 + v * L), z0);
            odd[v] = Metric::sparse_step(odd[v], load<V>(x1 + v * L), z1);
          }
        }
        if (p < n) {
          const Real* x0 = at(p);
          const V z0 = splat<V>(values[p]);
#pragma GCC unroll 4
          for (int v = 0; v < N; ++v) even[v] = Metric::sparse_step(even[v], load<V>(x0 + v * L), z0);
        }
        const V size = splat<V>(right->sizes[first + j]);
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v) {
          const V left_size = load<V>(left_sizes + part + v * L);
          const V s = Metric::sparse_sum(even[v] + odd[v], left_size);
          store(result + j * G + part + v * L, kernel->template finish<Real, L>(s, left_size, size));
        }
      }
  }
};

// N x N values transposed in registers, in log2(N) rounds of exchanges between rows that differ in one bit.
template <class T, int N, int Step = 1>
SLIM_INLINE void transpose(Vec<T, N> (&rows)[N]) {
  using V = Vec<T, N>;
#pragma GCC unroll 16
  for (int r = 0; r < N; ++r) {
    if (r & Step) continue;
    const V a = rows[r], b = rows[r | Step];
    rows[r] = exchange<T, N, Step, false>(a, b);
    rows[r | Step] = exchange<T, N, Step, true>(a, b);
  }
  if constexpr (2 * Step < N) transpose<T, N, 2 * Step>(rows);
}

// block[j][i] of a sparse tile (16 right rows) to out[i][offset + j].
template <class Real>
struct ScatterRows {
  template <class Isa>
  static SLIM_INLINE void run(const Real* block, Real* const* out, int rows, int offset) {
    constexpr int N = lanes<Real, Isa>, G = sparse_group<Real>;
    using V = Vec<Real, N>;
    for (int i = 0; i < rows; i += N)
      for (int j = 0; j < 16; j += N) {
        V square[N];
#pragma GCC unroll 16
        for (int r = 0; r < N; ++r) square[r] = load<V>(block + (j + r) * G + i);
        transpose<Real, N>(square);
#pragma GCC unroll 16
        for (int r = 0; r < N; ++r)
          if (i + r < rows) store(out[i + r] + offset + j, square[r]);
      }
  }
};

// One x against rows in memory, summed along the columns: nothing is packed, each value is read once.
template <class Real, class Kernel>
struct OneRow {
  template <class Isa>
  static SLIM_INLINE Real run(const Kernel* kernel, const Real* x, const Real* z, Index width, Real size) {
    constexpr int N = lanes<Real, Isa>;
    using V = Vec<Real, N>;
    using Metric = typename Kernel::Metric;
    V sum[2] = {V{}, V{}};
    Index k = 0;
    for (; k + 2 * N <= width; k += 2 * N) {
      sum[0] = Metric::step(sum[0], load<V>(x + k), load<V>(z + k));
      sum[1] = Metric::step(sum[1], load<V>(x + k + N), load<V>(z + k + N));
    }
    const V both = sum[0] + sum[1];
    Vec<Real, 1> tail{};
    for (; k < width; ++k) tail = Metric::step(tail, Vec<Real, 1>{x[k]}, Vec<Real, 1>{z[k]});
    Real total = tail[0];
#pragma GCC unroll 16
    for (int l = 0; l < N; ++l) total += both[l];
    const V s = splat<V>(total), sizes = splat<V>(size);
    return kernel->template finish<Real, N>(s, sizes, sizes)[0];
  }
};

template <class Real, class Kernel>
struct Diagonal {
  template <class Isa>
  static SLIM_INLINE void run(const Kernel* kernel, const Real* sizes, Index count, double* out) {
    for (Index i = 0; i < count; ++i) {
      const Vec<Real, 4> size = splat<Vec<Real, 4>>(sizes[i]);
      const bool dot = std::is_same_v<typename Kernel::Metric, Dot>;  // s(x, x) = x.x; the distances are 0
      out[i] = kernel->template finish<Real, 4>(dot ? size : Vec<Real, 4>{}, size, size)[0];
    }
  }
};

template <class Real, class Kernel>
class KernelBlocksOf final : public KernelBlocks<Real> {
 public:
  // `sparse`: use the sparse inner loop (right rows have few nonzeros).
  KernelBlocksOf(Kernel kernel, bool sparse) : kernel_(kernel), sparse_(sparse) { tile_shape<Real>(tile_rows_, tile_columns_); }

  void prepare(const Rows& rows, const Index* ids, int count, Left<Real>& left) const override {
    const int group = sparse_ ? sparse_group<Real> : tile_rows_;
    const int groups = (count + group - 1) / group;
    left.count = count;
    left.group = group;
    left.panel_start.resize(groups);
    left.sizes.assign(static_cast<std::size_t>(groups) * group, Real(0));
    sizes(rows, ids, count, left.sizes.data());
    if (sparse_ && rows.width > dense_map_limit) return prepare_mapped(rows, ids, left);
    left.map.clear();
    const std::size_t panel = static_cast<std::size_t>(rows.width) * group;
    Real* data = left.panels.reserve(panel * groups);
    for (int g = 0; g < groups; ++g) {
      left.panel_start[g] = g * panel;
      rows.pack(ids + g * group, std::min(group, count - g * group), group, data + g * panel);
    }
  }

  void pack(const Rows& rows, const Index* ids, int count, Strip<Real>& strip) const override {
    strip.count = count;
    const int panels = (count + tile_columns_ - 1) / tile_columns_;
    strip.sizes.assign(static_cast<std::size_t>(panels) * tile_columns_, Real(0));
    sizes(rows, ids, count, strip.sizes.data());
    if (sparse_) {
      strip.starts.assign(1, 0);
      strip.columns.clear();
      strip.values.clear();
      SparseRow<Real> row;
      for (int j = 0; j < count; ++j) {
        rows.nonzeros(ids[j], row);
        strip.columns.insert(strip.columns.end(), row.columns.begin(), row.columns.begin() + row.count);
        strip.values.insert(strip.values.end(), row.values.begin(), row.values.begin() + row.count);
        strip.starts.push_back(strip.values.size());
      }
      return;
    }
    const std::size_t panel = static_cast<std::size_t>(rows.width) * tile_columns_;
    Real* data = strip.panels.reserve(panel * panels);
    for (int p = 0; p < panels; ++p)
      rows.pack(ids + p * tile_columns_, std::min(tile_columns_, count - p * tile_columns_), tile_columns_, data + p * panel);
  }

  std::size_t strip_bytes(const Rows& rows) const override {
    const double cells = static_cast<double>(rows.size) * static_cast<double>(rows.width);
    return static_cast<std::size_t>(sparse_ ? cells * rows.density() * (sizeof(Real) + 4) : cells * sizeof(Real));
  }

  void evaluate(const Left<Real>& left, int rows, const Strip<Real>& right, Index width, int first, int count, Real* const* out,
                Scratch<Real>& scratch) const override {
    if (sparse_) return evaluate_sparse(left, rows, right, first, count, out, scratch);
    const std::size_t panel = static_cast<std::size_t>(width) * tile_columns_;
    for (int j = 0; j < count; j += tile_columns_)
      dispatch<DenseTile<Real, Kernel>>(&kernel_, &left, rows, width,
                                        static_cast<const Real*>(right.panels.get() + (first + j) / tile_columns_ * panel),
                                        right.sizes.data() + first + j, out, j);
  }

  void sizes(const Rows& rows, const Index* ids, Index count, Real* out) const override {
    rows.sizes(ids, count, Kernel::Metric::size, out);
  }

  bool against(const Rows& rows, const Real* x, Real* out) const override {
    if (rows.size == 0 || !rows.contiguous(0, Real())) return false;
    for (Index i = 0; i < rows.size; ++i) {
      const Real* z = rows.contiguous(i, Real());
      if constexpr (std::is_same_v<Kernel, Gaussian>) {  // by distances: no sizes to compute
        const NarrowGaussian direct{kernel_.gamma};
        out[i] = dispatch<OneRow<Real, NarrowGaussian>>(&direct, x, z, rows.width, Real(0));
      } else {
        out[i] = dispatch<OneRow<Real, Kernel>>(&kernel_, x, z, rows.width, Real(0));
      }
    }
    return true;
  }

  void diagonal(const Real* row_sizes, Index count, double* out) const override {
    dispatch<Diagonal<Real, Kernel>>(&kernel_, row_sizes, count, out);
  }

 private:
  static constexpr Index dense_map_limit = 2048;

  void prepare_mapped(const Rows& rows, const Index* ids, Left<Real>& left) const {
    const int group = left.group, groups = static_cast<int>(left.panel_start.size());
    left.map.resize(groups);
    std::vector<SparseRow<Real>> nonzeros(left.count);
    std::size_t total = 0;
    std::vector<std::size_t> used(groups);
    for (int g = 0; g < groups; ++g) {
      auto& map = left.map[g];
      map.assign(rows.width, 0);
      std::int32_t next = 1;  // panel row 0 stays zero
      for (int i = g * group; i < std::min(left.count, (g + 1) * group); ++i) {
        rows.nonzeros(ids[i], nonzeros[i]);
        for (std::size_t p = 0; p < nonzeros[i].count; ++p)
          if (std::int32_t& place = map[nonzeros[i].columns[p]]; !place) place = next++;
      }
      left.panel_start[g] = total;
      used[g] = static_cast<std::size_t>(next) * group;
      total += used[g];
    }
    Real* data = left.panels.reserve(total);
    std::fill(data, data + total, Real(0));
    for (int i = 0; i < left.count; ++i) {
      Real* panel = data + left.panel_start[i / group] + i % group;
      const auto& map = left.map[i / group];
      for (std::size_t p = 0; p < nonzeros[i].count; ++p)
        panel[static_cast<std::size_t>(map[nonzeros[i].columns[p]]) * group] += nonzeros[i].values[p];
    }
  }

  void evaluate_sparse(const Left<Real>& left, int rows, const Strip<Real>& right, int first, int count, Real* const* out,
                       Scratch<Real>& scratch) const {
    constexpr int few = 16, G = sparse_group<Real>;
    Real* block = scratch.transposed.reserve(few * G);
    for (int row = 0, g = 0; row < rows; row += G, ++g) {
      const std::int32_t* map = left.map.empty() ? nullptr : left.map[g].data();
      const Real* panel = left.panels.get() + left.panel_start[g];
      for (int j = 0; j < count; j += few) {
        const int columns = std::min(few, count - j);
        dispatch<SparseTile<Real, Kernel>>(&kernel_, panel, map, static_cast<const Real*>(left.sizes.data() + row), &right,
                                           first + j, columns, block);
        dispatch<ScatterRows<Real>>(static_cast<const Real*>(block), out + row, std::min(G, rows - row), j);
      }
    }
  }

  Kernel kernel_;
  bool sparse_;
  int tile_rows_, tile_columns_;
};

// Blocks for rows of this width, by the sparse inner loop if the right rows have few nonzeros.
template <class Real>
std::unique_ptr<KernelBlocks<Real>> make_blocks(AnyKernel kernel, Index width, bool sparse) {
  const auto* gaussian = std::get_if<Gaussian>(&kernel);
  if (gaussian && sizeof(Real) == 4 && width <= NarrowGaussian::most_columns) kernel = NarrowGaussian{gaussian->gamma};
  return std::visit(
      [&](const auto& k) -> std::unique_ptr<KernelBlocks<Real>> {
        return std::make_unique<KernelBlocksOf<Real, std::decay_t<decltype(k)>>>(k, sparse);
      },
      kernel);
}

}  // namespace slimsvm
