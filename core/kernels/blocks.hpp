// Blocks of kernel values between two sets of rows: the one place where kernels are evaluated.
//
// The left rows are packed once (`Left`); strips of right rows then stream past them. Two inner loops:
//  * dense: a register tile of left x right sums, like a matrix product, with the kernel fused behind it;
//  * sparse: each nonzero of a right row against a panel of left rows, made dense over the columns they use.
// Both sum over differences instead where shorter sums would lose digits: see kernels.hpp. That is decided for each
// tile by the sizes of its rows. Where one of two rows is small, nothing is lost that the value would show.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <new>
#include <vector>

#include "kernels/kernels.hpp"
#include "rows/rows.hpp"
#include "cpu/simd.hpp"
#include "cpu/transpose.hpp"

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
  std::vector<Real> sizes;    // padded to whole groups
  std::vector<Real> largest;  // of the sizes in each group
  std::vector<Index> used;    // rows of each sparse panel
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
  std::vector<Real> dense;  // a sparse right row over the rows of a panel; zero between uses
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

// Sums in float over many columns are sums of sums over this many: their rounding grows with stretch + width / stretch.
template <class Real>
constexpr Index stretch = sizeof(Real) == 4 ? 64 : std::numeric_limits<Index>::max() / 2;

// sum[i][v] = the sum of the steps of one group of left rows against one packed panel of right rows.
template <class Metric, class V, int M, int N, class Real>
SLIM_INLINE void add_steps(const Real*& a, const Real*& b, Index width, V (&sum)[M][N]) {
  constexpr int L = sizeof(V) / sizeof(Real);
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
}

template <class Metric, class V, int M, int N, class Real>
SLIM_INLINE void add_stretches(const Real* a, const Real* b, Index width, V (&sum)[M][N]) {
  add_steps<Metric>(a, b, std::min(width, stretch<Real>), sum);
  if constexpr (sizeof(Real) == 4)
    for (Index first = stretch<Real>; first < width; first += stretch<Real>) {
      V part[M][N];
      add_steps<Metric>(a, b, std::min(width - first, stretch<Real>), part);
#pragma GCC unroll 16
      for (int i = 0; i < M; ++i)
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v) sum[i][v] += part[i][v];
    }
}

template <class Real, class Kernel>
struct DenseTile {
  // `left` groups against one packed panel of right rows. `products`: the strain up to which they serve.
  template <class Isa>
  static SLIM_INLINE void run(const Kernel* kernel, const Left<Real>* left, int left_rows, Index width, const Real* panel,
                              const Real* right_sizes, Real* const* out, int offset, double products) {
    constexpr int L = lanes<Real, Isa>, M = Isa::tile_rows, N = Isa::tile_vectors;
    using V = Vec<Real, L>;
    constexpr bool choice = of_differences<Kernel> && !std::is_same_v<typename Kernel::Metric, DirectOf<Kernel>>;
    Real largest = 0;
    if constexpr (choice) largest = *std::max_element(right_sizes, right_sizes + N * L);
    for (int first = 0, g = 0; first < left_rows; first += M, ++g) {
      const Real* a = left->panels.get() + left->panel_start[g];
      const int rows = std::min(M, left_rows - first);
      V sum[M][N];
      if constexpr (choice) {
        if (!(kernel->strain(std::min(left->largest[g], largest)) <= products)) {
          add_stretches<typename Kernel::Direct>(a, panel, width, sum);
          each_sum(sum, rows, [&](int i, int v, V s) SLIM_INLINE_LAMBDA {
            store(out[first + i] + offset + v * L, kernel->template direct<Real, L>(s));
          });
          continue;
        }
      }
      add_stretches<typename Kernel::Metric>(a, panel, width, sum);
      each_sum(sum, rows, [&](int i, int v, V s) SLIM_INLINE_LAMBDA {
        const V left_size = splat<V>(left->sizes[first + i]), right_size = load<V>(right_sizes + v * L);
        store(out[first + i] + offset + v * L, kernel->template finish<Real, L>(s, left_size, right_size));
      });
    }
  }

 private:
  // use(i, v, sum[i][v]) for i < rows.
  template <class V, int M, int N, class Use>
  static SLIM_INLINE void each_sum(const V (&sum)[M][N], int rows, const Use& use) {
#if defined(__clang__)
    // Unrolled, Clang keeps the many constants of exp in double on the stack: it writes them there at every call.
    if constexpr (sizeof(Real) == sizeof(double)) {
      V kept[M][N];
#pragma GCC unroll 16
      for (int i = 0; i < M; ++i)
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v) kept[i][v] = sum[i][v];
#pragma clang loop unroll(disable)
      for (int i = 0; i < rows; ++i)
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v) use(i, v, kept[i][v]);
      return;
    }
#endif
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) {
      if (i >= rows) continue;
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) use(i, v, sum[i][v]);
    }
  }
};

// Sizes of the rows of one packed panel, summed as the tile sums products.
template <class Real, class Metric>
struct PanelSizes {
  template <int Lanes, int Count>
  static SLIM_INLINE void add(const Real* panel, Index width, Real* sizes) {
    using V = Vec<Real, Lanes>;
    V sum[Count];
    for (Index first = 0; first == 0 || first < width; first += stretch<Real>) {
      V part[Count];
#pragma GCC unroll 16
      for (int i = 0; i < Count; ++i) part[i] = V{};
      for (Index k = first; k < std::min(first + stretch<Real>, width); ++k, panel += Lanes * Count)
#pragma GCC unroll 16
        for (int i = 0; i < Count; ++i) part[i] = Metric::size_step(part[i], load<V>(panel + i * Lanes));
#pragma GCC unroll 16
      for (int i = 0; i < Count; ++i) sum[i] = first ? sum[i] + part[i] : part[i];
    }
#pragma GCC unroll 16
    for (int i = 0; i < Count; ++i) store(sizes + i * Lanes, sum[i]);
  }
  template <class Isa>
  static SLIM_INLINE void run(const Real* panel, Index width, int stride, Real* sizes) {
    if (stride == Isa::tile_rows)
      add<2, Isa::tile_rows / 2>(panel, width, sizes);
    else
      add<lanes<Real, Isa>, Isa::tile_vectors>(panel, width, sizes);
  }
};

// The size of one row given by its nonzeros, summed as the sparse tile sums products.
template <class Real, class Metric>
struct SparseSize {
  template <class Isa>
  static SLIM_INLINE Real run(const Real* values, std::size_t count) {
    using V = Vec<Real, lanes<Real, Isa>>;  // a vector of one lane would go through memory
    V even{}, odd{};
    std::size_t p = 0;
    for (; p + 1 < count; p += 2) {
      even = Metric::size_step(even, splat<V>(values[p]));
      odd = Metric::size_step(odd, splat<V>(values[p + 1]));
    }
    if (p < count) even = Metric::size_step(even, splat<V>(values[p]));
    return (even + odd)[0];
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

// One panel of left rows against one right row by differences: `z` is that row over all rows of the panel, `outside` the
// sum over the columns that no row of the panel uses.
template <class Real, class Kernel>
struct SparseDifferences {
  template <class Isa>
  static SLIM_INLINE void run(const Kernel* kernel, const Real* panel, Index used, const Real* z, Real outside, Real* result) {
    constexpr int L = lanes<Real, Isa>, G = sparse_group<Real>;
    constexpr int N = std::min(G / L, 4);
    using V = Vec<Real, L>;
    for (int part = 0; part < G; part += N * L) {
      V sum[N];
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) sum[v] = splat<V>(outside);
      const Real* x = panel + part;
      for (Index u = 0; u < used; ++u, x += G) {
        const V right = splat<V>(z[u]);
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v) sum[v] = Kernel::Direct::step(sum[v], load<V>(x + v * L), right);
      }
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) store(result + part + v * L, kernel->template direct<Real, L>(sum[v]));
    }
  }
};

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

template <class Real, class Kernel>
struct Diagonal {
  template <class Isa>
  static SLIM_INLINE void run(const Kernel* kernel, const Real* sizes, Index count, double* out) {
    for (Index i = 0; i < count; ++i) {
      const Vec<Real, 4> size = splat<Vec<Real, 4>>(of_differences<Kernel> ? Real(0) : sizes[i]);
      out[i] = kernel->template finish<Real, 4>(size, size, size)[0];
    }
  }
};

template <class Real, class Kernel>
class KernelBlocksOf final : public KernelBlocks<Real> {
 public:
  // `sparse`: use the sparse inner loop (right rows have few nonzeros).
  KernelBlocksOf(Kernel kernel, Index width, bool sparse) : kernel_(kernel), sparse_(sparse) {
    tile_shape<Real>(tile_rows_, tile_columns_);
    if (sparse) products_ = sparse_products_up_to<Real>;
    if constexpr (std::is_same_v<Kernel, Gaussian>)
      if (!sparse && width <= Gaussian::narrow<Real>) products_ = -1;  // differences throughout
  }

  void prepare(const Rows& rows, const Index* ids, int count, Left<Real>& left) const override {
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

  void pack(const Rows& rows, const Index* ids, int count, Strip<Real>& strip) const override {
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

  void evaluate(const Left<Real>& left, int rows, const Strip<Real>& right, Index width, int first, int count, Real* const* out,
                Scratch<Real>& scratch) const override {
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
    dispatch<Diagonal<Real, Kernel>>(&kernel_, static_cast<const Real*>(sizes.data()), count, out);
  }

  Rounding rounding(const Rows& rows, const Index* ids, Index count) const override {
    std::vector<double> sizes(count);
    rows.sizes(ids, count, Metric::size, sizes.data());
    const double largest = count ? *std::max_element(sizes.begin(), sizes.end()) : 0.0;
    const Index chain = sparse_ ? rows.terms() / 2 + 1 : std::min(rows.width, stretch<Real> + rows.width / stretch<Real> + 1);  // of additions
    const double terms = static_cast<double>(chain), unit = 0.5 * std::numeric_limits<Real>::epsilon();
    if constexpr (of_differences<Kernel>)
      return kernel_.rounding(largest, terms, unit, !sparse_ && (products_ < 0 || std::is_same_v<Metric, DirectOf<Kernel>>), products_);
    else
      return kernel_.rounding(largest, terms, unit, false);
  }

 private:
  using Metric = typename Kernel::Metric;
  static constexpr Index dense_map_limit = 2048;

  Real size_of(const SparseRow<Real>& row) const {
    if constexpr (of_differences<Kernel>) return dispatch<SparseSize<Real, Metric>>(row.values.data(), row.count);
    return Real(0);  // the others do not ask
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
      if constexpr (std::is_same_v<Kernel, Gaussian>)
        if (products_ >= 0)
          dispatch<PanelSizes<Real, Metric>>(static_cast<const Real*>(data + g * panel), rows.width, group, sizes + g * group);
    }
  }

  void prepare_sparse(const Rows& rows, const Index* ids, Left<Real>& left) const {
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
        if constexpr (of_differences<Kernel>)
          for (int c = 0; c < columns; ++c)
            if (!(kernel_.strain(std::min(left.largest[g], right.sizes[first + j + c])) <= products_))
              by_differences(panel, map, left.used[g], right, first + j + c, block + c * G, scratch.dense);
        dispatch<ScatterRows<Real>>(static_cast<const Real*>(block), out + row, std::min(G, rows - row), j);
      }
    }
  }

  // One right row, made dense over the rows of the panel for as long as it takes.
  void by_differences(const Real* panel, const std::int32_t* map, Index used, const Strip<Real>& right, int row, Real* result,
                      std::vector<Real>& dense) const {
    if (static_cast<Index>(dense.size()) < used) dense.resize(used);
    using V = Vec<Real, 1>;
    V outside{};
    const auto place = [&](std::size_t p) { return map ? map[right.columns[p]] : right.columns[p]; };
    for (std::size_t p = right.starts[row]; p < right.starts[row + 1]; ++p) {
      if (map && place(p) == 0)
        outside = Kernel::Direct::step(outside, V{}, V{right.values[p]});
      else
        dense[place(p)] = right.values[p];
    }
    dispatch<SparseDifferences<Real, Kernel>>(&kernel_, panel, used, static_cast<const Real*>(dense.data()), outside[0], result);
    for (std::size_t p = right.starts[row]; p < right.starts[row + 1]; ++p) dense[place(p)] = Real(0);
  }

  Kernel kernel_;
  bool sparse_;
  int tile_rows_, tile_columns_;
  double products_ = products_up_to;  // strain up to which they serve
};

// Blocks for rows of this width, by the sparse inner loop if the right rows have few nonzeros.
template <class Real>
std::unique_ptr<KernelBlocks<Real>> make_blocks(AnyKernel kernel, Index width, bool sparse) {
  return std::visit(
      [&](const auto& k) -> std::unique_ptr<KernelBlocks<Real>> {
        return std::make_unique<KernelBlocksOf<Real, std::decay_t<decltype(k)>>>(k, width, sparse);
      },
      kernel);
}

}  // namespace slimsvm
