// The matrix of the dual: rows of kernel values by position in the training data, cached, over a view.
//
// A view is a list of segments (runs of positions); its variables are their concatenation. One segment: all
// points. Two: the two classes of a one-vs-one subproblem. The same segment twice: doubled variables.
#pragma once

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "kernels/kernel.hpp"
#include "cpu/threads.hpp"
#include "linalg/row_sums.hpp"
#include "matrix/row_cache.hpp"

namespace slimsvm {

struct Segment {
  Index begin, end;
};

// Where rows come from: a kernel over data, a given matrix, a function of the user's.
template <class Real>
class RowSource {
 public:
  virtual ~RowSource() = default;
  // Told once which runs of columns strip() will ask for (or parts of them): may keep them ready within the
  // budget. The bytes used.
  virtual std::size_t plan(const std::vector<Segment>&, std::size_t) { return 0; }
  virtual bool concurrent() const { return true; }  // strip() may run on several threads
  virtual int chunk() const { return 512; }         // rows that prepare() takes at once
  // True if recomputing a row costs about as much as allocating memory for it.
  virtual bool cheap() const { return false; }
  virtual void prepare(const Index* positions, int count) = 0;
  // out[i][0..count) = row of prepared position i < rows at columns [first, first + count); out has room for
  // strip_padding(count) values.
  virtual void strip(int rows, Index first, int count, Real* const* out, int thread) = 0;
  // The same at any columns; false where rows cannot be had so.
  virtual bool gather(int, const Index*, int, Real* const*, int) { return false; }
  virtual void diagonal(double* out) const = 0;
  // No value is further than this from the true one.
  virtual Rounding rounding() const { return {std::numeric_limits<double>::infinity()}; }
};

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

// Bounds on how far values K a, tracked through rounded rows, are from the true ones. They were exact at `anchor`. A value
// with a relative error is the same whenever its row is computed: then only |a - anchor| counts, not the way there.
struct Doubt {
  double all = 0;               // of every value
  double share = 0;             // of what is weighed, for each value
  std::vector<double> weighed;  // sum |a - anchor| k
  std::vector<double> anchor;   // empty: zero

  double of(Index v) const { return weighed.empty() ? all : all + share * weighed[v]; }
  double distance(Index v, double a) const { return std::fabs(anchor.empty() ? a : a - anchor[v]); }
  void clear(const std::vector<double>& a) {
    all = share = 0;
    weighed.clear();
    anchor = a;
  }
  // Takes in a change x of a, by which the distances to the anchor grow by `farther`. True: these are to be weighed.
  bool weigh(const std::vector<double>& x, const std::vector<double>& farther, const Rounding& rounding, Index size) {
    constexpr double negligible = 1e-7;
    if (all == std::numeric_limits<double>::infinity()) return false;  // nothing is known, and nothing will be
    double way = 0, sum = 0;
    for (const double value : x) way += std::fabs(value);
    for (const double value : farther) sum += std::fabs(value);
    all += way * rounding.absolute;
    if (!(sum * rounding.relative > negligible)) {  // values with a relative error are at most 1
      all += sum * rounding.relative;
      return false;
    }
    share = std::max(share, rounding.relative);
    if (weighed.empty()) weighed.assign(size, 0.0);
    return true;
  }
};

// What a view looks like from its variables' side.
struct View {
  struct Tile {
    int segment, index;     // tile `index` of that segment
    Index position, first;  // of its first column: in the data, among the view's variables
    int count;
  };
  std::vector<int> segments;
  std::vector<Tile> tiles;
  std::vector<Index> start;  // first variable of each segment; last: number of variables
  std::vector<Index> begin;  // first position of each segment
  bool twice = false;        // the second half of the segments are those of the first again: two variables a row
  Index size() const { return start.back(); }
  Index rows() const { return twice ? size() / 2 : size(); }
  std::size_t row_tiles() const { return twice ? tiles.size() / 2 : tiles.size(); }
  Index position(Index variable) const {
    const auto s = std::upper_bound(start.begin(), start.end(), variable) - start.begin() - 1;
    return begin[s] + (variable - start[s]);
  }
};

inline View make_view(const std::vector<Segment>& all, const std::vector<int>& chosen, int tile) {
  View view;
  view.segments = chosen;
  view.start.push_back(0);
  for (const int s : chosen) {
    const Index length = all[s].end - all[s].begin, base = view.start.back();
    view.begin.push_back(all[s].begin);
    for (Index t = 0; t < length; t += tile)
      view.tiles.push_back({s, static_cast<int>(t / tile), all[s].begin + t, base + t,
                            static_cast<int>(std::min<Index>(tile, length - t))});
    view.start.push_back(base + length);
  }
  const auto half = chosen.begin() + chosen.size() / 2;
  view.twice = chosen.size() % 2 == 0 && std::equal(chosen.begin(), half, half);
  return view;
}

// Tile length that wastes least of the arena: tiles are whole, segments are not.
inline int tile_length(const std::vector<Segment>& segments) {
  int best = 1024;
  double least = 1e300;
  for (int tile = 1024; tile >= 256; tile -= 32) {
    double total = 0;
    for (const auto& s : segments) total += static_cast<double>((s.end - s.begin + tile - 1) / tile) * tile;
    if (total < least * (1 - 1e-3)) least = total, best = tile;
  }
  Index longest = 1;
  for (const auto& s : segments) longest = std::max(longest, s.end - s.begin);
  return std::min<int>(best, strip_padding(static_cast<int>(std::min<Index>(longest, 1024))));
}

template <class Real>
class Gram {
 public:
  using Value = Real;
  // Of the cache's bytes, at most `strip_bytes` may go to strips kept ready.
  Gram(std::unique_ptr<RowSource<Real>> source, std::vector<Segment> segments, std::size_t cache_bytes, std::size_t strip_bytes,
       ThreadPool& pool)
      : source_(std::move(source)),
        segments_(std::move(segments)),
        tile_(tile_length(segments_)),
        cache_(cache_bytes - source_->plan(tiles(), strip_bytes), first_bytes(cache_bytes), tile_),
        pool_(pool),
        workspaces_(pool.size()) {}

  Index positions() const { return segments_.back().end; }
  View view(const std::vector<int>& chosen) const { return make_view(segments_, chosen, tile_); }
  // Rows over the view that the cache can hold at once.
  Index capacity(const View& view) const {
    if (resident()) return std::numeric_limits<std::int32_t>::max();
    return rows_in(cache_.capacity(), view);
  }
  const std::vector<double>& diagonal() {
    if (diagonal_.empty()) {
      diagonal_.resize(positions());
      source_->diagonal(diagonal_.data());
    }
    return diagonal_;
  }
  // What a product with these rows may be off for each unit of |x|_1, and in share of the values: their own rounding, and that
  // of long sums in double (a sum of 10^6 terms is off by less).
  const Rounding& rounding() {
    if (rounding_.absolute < 0) {
      const auto& all = diagonal();
      const double most = all.empty() ? 0.0 : *std::max_element(all.begin(), all.end());
      rounding_ = source_->rounding();
      rounding_.absolute += 1e-10 * std::max(1.0, most);
    }
    return rounding_;
  }
  Index computed() const { return computed_; }  // row segments so far: the cost that the cache saves

  // table[i * tiles + t] = tile t of the row of positions[i] over the view. Missing rows are computed together.
  void rows(const View& view, const std::vector<Index>& positions, std::vector<Real*>& table, Monitor& monitor) {
    const std::size_t tiles = view.tiles.size(), count = positions.size();
    table.resize(count * tiles);
    if (resident()) {
      for (std::size_t t = 0; t < tiles; ++t) {
        Real* first = matrix_.get() + places_[view.tiles[t].segment] + static_cast<std::size_t>(view.tiles[t].index) * tile_;
        for (std::size_t i = 0; i < count; ++i) table[i * tiles + t] = first + static_cast<std::size_t>(positions[i]) * length_;
      }
      return;
    }
    std::vector<int> distinct(view.segments);
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    std::vector<typename RowCache<Real>::Entry*> entries(distinct.size() * count);
    cache_.begin_round();
    // Ask for all first, so that no row of this round is dropped to make room for another.
    for (std::size_t d = 0; d < distinct.size(); ++d)
      for (std::size_t i = 0; i < count; ++i) entries[d * count + i] = cache_.find(positions[i], distinct[d]);
    std::vector<Index> missing;
    std::vector<typename RowCache<Real>::Entry*> fresh;
    try {
      for (std::size_t d = 0; d < distinct.size(); ++d) {
        missing.clear();
        fresh.clear();
        const auto& segment = segments_[distinct[d]];
        const int length = tiles_of(segment);
        for (std::size_t i = 0; i < count; ++i) {
          auto*& entry = entries[d * count + i];
          if (!entry) entry = cache_.find(positions[i], distinct[d]);  // two variables may share a position
          if (entry) continue;
          entry = cache_.insert(positions[i], distinct[d], length);
          missing.push_back(positions[i]);
          fresh.push_back(entry);
        }
        compute(segment, missing, fresh, monitor);
        computed_ += static_cast<Index>(missing.size());
      }
    } catch (...) {
      cache_.clear();
      throw;
    }
    for (std::size_t t = 0; t < tiles; ++t) {
      const auto& tile = view.tiles[t];
      const auto d = std::lower_bound(distinct.begin(), distinct.end(), tile.segment) - distinct.begin();
      for (std::size_t i = 0; i < count; ++i) table[i * tiles + t] = entries[d * count + i]->tiles[tile.index];
    }
  }

  // Many small classes: every pair of them will need all of its rows, and one product is faster than many. From then on
  // rows are read where they lie, by any number of threads.
  void prefetch(Index pair_limit, Monitor& monitor) {
    if (prefetched_ || segments_.size() < 3) return;  // one problem reads its rows once
    prefetched_ = true;
    Index longest = 0;
    for (const auto& s : segments_) longest = std::max(longest, s.end - s.begin);
    std::vector<int> all(segments_.size());
    std::iota(all.begin(), all.end(), 0);
    if (2 * longest > pair_limit || rows_in(cache_.room(), view(all)) < positions()) return;
    diagonal();  // not by several threads at once
    std::vector<std::size_t> places;
    std::size_t length = 0;
    for (const auto& s : segments_) {
      places.push_back(length);
      length += static_cast<std::size_t>(strip_padding(static_cast<int>(s.end - s.begin)));
    }
    const std::size_t size = length * static_cast<std::size_t>(positions());
    Real* matrix = matrix_.reserve(size);
    use_large_pages(matrix, size * sizeof(Real));
    fill_symmetric(matrix, length, places, monitor);
    places_ = std::move(places);  // only now: an error leaves nothing half-done
    length_ = length;
  }
  // Are all rows at hand? Then problems over them that are one block each may be solved at the same time.
  bool resident() const { return length_ > 0; }
  ThreadPool& pool() { return pool_; }

  // For the solver's block, reused from problem to problem; each thread has its own.
  Buffer<Real>& workspace(int thread) { return workspaces_[thread]; }
  // All positions in order, and no other problem to share rows with.
  bool covers(const View& view) const { return segments_.size() <= 2 && view.size() == positions() && view.begin[0] == 0; }

  // The whole matrix of a view that covers all positions in order, past the cache: half of it is computed, the
  // rest mirrored. Rows of the matrix have 32 values to spare.
  void fill(Real* matrix, std::size_t stride, Monitor& monitor) {
    const int n = static_cast<int>(positions());
    std::vector<Index> everyone(n);
    std::iota(everyone.begin(), everyone.end(), Index(0));
    const int chunk = source_->chunk();
    for (int top = 0; top < n; top += chunk) {
      const int rows = std::min(chunk, n - top);
      source_->prepare(everyone.data() + top, rows);
      std::vector<Real*> out(rows);
      for (const auto& tile : tiles())
        for (int first = static_cast<int>(tile.begin); first < tile.end; first += 32) {
          const int count = std::min<int>(32, static_cast<int>(tile.end) - first);
          const int wanted = std::min(rows, first + count - top);  // up to the diagonal
          if (wanted <= 0) continue;
          for (int i = 0; i < wanted; ++i) out[i] = matrix + (top + i) * stride + first;
          source_->strip(wanted, first, count, out.data(), 0);
        }
      monitor.poll();
    }
    for (int i = 0; i < n; ++i) {
      Real* row = matrix + i * stride;
      for (int j = 0; j < i; ++j) row[j] = matrix[j * stride + i];
      std::fill(row + n, row + stride, Real(0));
    }
    computed_ += n;
  }

  // gradient -= K[:, rows] x; the doubt about it grows with the distances `farther`.
  void subtract(const View& view, const std::vector<const Real*>& table, const std::vector<double>& x,
                const std::vector<double>& farther, double* gradient, Doubt& doubt, Monitor& monitor) {
    const bool weigh = doubt.weigh(x, farther, rounding(), view.size());
    const std::size_t tiles = view.tiles.size(), count = x.size();
    const Mirror same(view, gradient), weighed(view, weigh ? doubt.weighed.data() : nullptr);
    pool_.run(
        view.row_tiles(),
        [&](std::size_t t, int) {
          std::vector<const Real*> rows(count);
          for (std::size_t i = 0; i < count; ++i) rows[i] = table[i * tiles + t];
          const auto& tile = view.tiles[t];
          subtract_rows(rows.data(), x.data(), farther.data(), static_cast<int>(count), tile.count, gradient + tile.first,
                        weigh ? doubt.weighed.data() + tile.first : nullptr);
        },
        monitor);
  }

  // result -= K x over the view, past the cache: every row is computed afresh and used once. The doubt: as for a change from 0.
  void subtract_product(const View& view, const double* x, double* result, Monitor& monitor, Doubt* doubt = nullptr) {
    if (resident() && !doubt) return subtract_resident(view, x, result, monitor);
    bool weigh = false;
    if (doubt) {
      std::vector<double> all(x, x + view.size()), distances(all);
      for (double& value : distances) value = std::fabs(value);
      weigh = doubt->weigh(all, distances, rounding(), view.size());
    }
    const Mirror same(view, result), weighed(view, weigh ? doubt->weighed.data() : nullptr);
    std::vector<Index> columns, target;  // starts of strips: positions and variables
    std::vector<int> length;
    for (std::size_t t = 0; t < view.row_tiles(); ++t)
      for (int c = 0; c < view.tiles[t].count; c += strip_length) {
        const auto& tile = view.tiles[t];
        columns.push_back(tile.position + c);
        target.push_back(tile.first + c);
        length.push_back(std::min(strip_length, tile.count - c));
      }
    for_strips_of_product(view, x, columns.size(), monitor, [&](std::size_t t, int rows, Real* const* out, const double* values, int thread) {
      source_->strip(rows, columns[t], length[t], out, thread);
      std::vector<double> sizes(values, values + rows);
      for (double& value : sizes) value = std::fabs(value);
      subtract_rows(out, values, sizes.data(), rows, length[t], result + target[t], weigh ? doubt->weighed.data() + target[t] : nullptr);
    });
  }

  // The same for some of the variables only; false where rows cannot be had so. Of a row's two variables both, or none.
  bool subtract_product_at(const View& view, const double* x, const std::vector<Index>& some, double* result, Monitor& monitor) {
    std::atomic<bool> possible{true};
    const std::vector<Index> variables(some.begin(), std::lower_bound(some.begin(), some.end(), view.rows()));
    const Mirror same(view, result);
    const std::size_t strips = (variables.size() + strip_length - 1) / strip_length;
    for_strips_of_product(view, x, strips, monitor, [&](std::size_t t, int rows, Real* const* out, const double* values, int thread) {
      const Index* first = variables.data() + t * strip_length;
      const int count = static_cast<int>(std::min<std::size_t>(strip_length, variables.size() - t * strip_length));
      Index positions[strip_length] = {};
      double sum[strip_length] = {};
      for (int j = 0; j < count; ++j) positions[j] = view.position(first[j]);
      if (!source_->gather(rows, positions, count, out, thread)) {
        possible = false;
        return;
      }
      dispatch<SubtractRows<Real>>(static_cast<const Real* const*>(out), values, rows, static_cast<Index>(count), static_cast<double*>(sum));
      for (int j = 0; j < count; ++j) result[first[j]] += sum[j];
    });
    return possible;
  }

  // K x over the view with compensated sums (Neumaier), row by row, in this thread alone.
  std::vector<double> compensated_product(const View& view, const std::vector<double>& x, Monitor& monitor) {
    const std::size_t tiles = view.tiles.size();
    std::vector<double> sum(view.size(), 0.0), rest(view.size(), 0.0);
    std::vector<Real*> row;
    for (Index v = 0; v < view.size(); ++v) {
      if (x[v] == 0) continue;
      rows(view, {view.position(v)}, row, monitor);
      for (std::size_t t = 0; t < tiles; ++t)
        for (int j = 0; j < view.tiles[t].count; ++j) {
          const Index w = view.tiles[t].first + j;
          const double term = x[v] * row[t][j], next = sum[w] + term, added = next - sum[w];
          rest[w] += (sum[w] - (next - added)) + (term - added);
          sum[w] = next;
        }
    }
    for (std::size_t w = 0; w < sum.size(); ++w) sum[w] += rest[w];
    return sum;
  }

  // out[o] += K x[o] for several x over the view, past the cache. K is symmetric: a block beyond the diagonal serves
  // its rows and its columns.
  void add_symmetric_product(const View& view, const double* x, int outputs, double* out, Monitor& monitor) {
    const Index n = view.size();
    struct Piece {
      Index position, first;
      int count;
    };
    std::vector<Piece> pieces;
    for (const auto& tile : view.tiles)
      for (int c = 0; c < tile.count; c += strip_length)
        pieces.push_back({tile.position + c, tile.first + c, std::min(strip_length, tile.count - c)});
    constexpr std::size_t groups = 32;  // of pieces: each with sums of its own, so that threads change no rounding
    std::vector<Buffer<Real>> buffers(pool_.size());
    std::vector<std::vector<double>> sums(groups);
    std::vector<Index> positions;
    // Rows of as many whole pieces as may be prepared together; at least of one.
    const std::size_t together = std::clamp(source_->chunk() / strip_length, 1, 4);
    for (std::size_t start = 0; start < pieces.size(); start += together) {
      const std::size_t beyond = std::min(start + together, pieces.size());
      const Index top = pieces[start].first;
      const int rows = static_cast<int>((beyond < pieces.size() ? pieces[beyond].first : n) - top);
      positions.clear();
      for (int i = 0; i < rows; ++i) positions.push_back(view.position(top + i));
      source_->prepare(positions.data(), rows);
      for (auto& s : sums) s.assign(static_cast<std::size_t>(rows) * outputs, 0.0);
      const auto use = [&](std::size_t t, double* sum, int thread) {
        const Piece& piece = pieces[t];
        Real* block = buffers[thread].reserve(static_cast<std::size_t>(rows) * strip_length);
        std::vector<Real*> strip(rows);
        for (int i = 0; i < rows; ++i) strip[i] = block + static_cast<std::size_t>(i) * strip_length;
        source_->strip(rows, piece.position, piece.count, strip.data(), thread);
        for (int o = 0; o < outputs; ++o)
          dispatch<AddDots<Real>>(static_cast<const Real* const*>(strip.data()), x + o * n + piece.first, rows,
                                  static_cast<Index>(piece.count), sum + static_cast<std::size_t>(o) * rows);
        if (t < beyond) return;
        std::vector<double> minus(rows);
        for (int o = 0; o < outputs; ++o) {
          for (int i = 0; i < rows; ++i) minus[i] = -x[o * n + top + i];
          dispatch<SubtractRows<Real>>(static_cast<const Real* const*>(strip.data()), static_cast<const double*>(minus.data()), rows,
                                       static_cast<Index>(piece.count), out + o * n + piece.first);
        }
      };
      run_strips(
          groups,
          [&](std::size_t g, int thread) {
            for (std::size_t t = start + g; t < pieces.size(); t += groups) use(t, sums[g].data(), thread);
          },
          monitor);
      for (const auto& s : sums)
        for (int o = 0; o < outputs; ++o)
          for (int i = 0; i < rows; ++i) out[o * n + top + i] += s[static_cast<std::size_t>(o) * rows + i];
    }
  }

  // Rows of the view's matrix, one after the other.
  void copy_rows(const View& view, const std::vector<Index>& variables, double* out, Monitor& monitor) {
    const std::size_t chunk = std::min(source_->chunk(), 512), tiles = view.tiles.size();
    std::vector<Buffer<Real>> buffers(pool_.size());
    std::vector<Index> positions;
    for (const Index v : variables) positions.push_back(view.position(v));
    for (std::size_t top = 0; top < positions.size(); top += chunk) {
      const int rows = static_cast<int>(std::min(chunk, positions.size() - top));
      source_->prepare(positions.data() + top, rows);
      run_strips(
          tiles,
          [&](std::size_t t, int thread) {
            const auto& tile = view.tiles[t];
            Real* block = buffers[thread].reserve(static_cast<std::size_t>(rows) * tile_);
            std::vector<Real*> strip(rows);
            for (int i = 0; i < rows; ++i) strip[i] = block + static_cast<std::size_t>(i) * tile_;
            source_->strip(rows, tile.position, tile.count, strip.data(), thread);
            for (int i = 0; i < rows; ++i)
              std::copy(strip[i], strip[i] + tile.count, out + (top + i) * static_cast<std::size_t>(view.size()) + tile.first);
          },
          monitor);
    }
  }

 private:
  static constexpr int strip_length = 128;

  // What is taken from the value of a row, taken from that of its other variable, too: when this goes.
  class Mirror {
   public:
    Mirror(const View& view, double* values) {
      if (!view.twice || !values) return;
      values_ = values;
      before_.assign(values, values + view.rows());
    }
    Mirror(const Mirror&) = delete;
    Mirror& operator=(const Mirror&) = delete;
    ~Mirror() {
      for (std::size_t v = 0; v < before_.size(); ++v) values_[before_.size() + v] += values_[v] - before_[v];
    }

   private:
    double* values_ = nullptr;
    std::vector<double> before_;
  };

  // use(strip, rows, out, values, thread) for chunks of the rows where x is not zero; out has room for a strip.
  template <class Use>
  void for_strips_of_product(const View& view, const double* x, std::size_t strips, Monitor& monitor, const Use& use) {
    std::vector<Index> positions;
    std::vector<double> values;
    const Index n = view.rows();
    for (Index v = 0; v < n; ++v)
      if (const double value = view.twice ? x[v] + x[n + v] : x[v]; value != 0) {
        positions.push_back(view.position(v));
        values.push_back(value);
      }
    const std::size_t chunk = std::min(source_->chunk(), 512);
    std::vector<Buffer<Real>> buffers(pool_.size());
    for (std::size_t first = 0; first < positions.size(); first += chunk) {
      const int count = static_cast<int>(std::min(chunk, positions.size() - first));
      source_->prepare(positions.data() + first, count);
      run_strips(
          strips,
          [&](std::size_t t, int thread) {
            Real* block = buffers[thread].reserve(static_cast<std::size_t>(count) * strip_length);
            std::vector<Real*> out(count);
            for (int i = 0; i < count; ++i) out[i] = block + static_cast<std::size_t>(i) * strip_length;
            use(t, count, out.data(), static_cast<const double*>(values.data() + first), thread);
          },
          monitor);
    }
  }

  // y -= rows' x, and z += rows' w if it is asked for.
  static void subtract_rows(const Real* const* rows, const double* x, const double* w, int count, Index length, double* y, double* z) {
    if (z)
      dispatch<SubtractAndWeigh<Real>>(rows, x, w, count, length, y, z);
    else
      dispatch<SubtractRows<Real>>(rows, x, count, length, y);
  }

  static Index rows_in(std::size_t tiles, const View& view) {
    return static_cast<Index>(tiles / std::max<std::size_t>(1, view.row_tiles()));
  }
  // Initial size: the whole cache, or 1024 rows (at least 64 MiB) if rows are cheap to recompute.
  std::size_t first_bytes(std::size_t bytes) const {
    constexpr std::size_t first_rows = 1024, least = std::size_t(64) << 20;
    if (!source_->cheap()) return bytes;
    return std::max(least, first_rows * static_cast<std::size_t>(positions() + tile_) * sizeof(Real));
  }
  std::vector<Segment> tiles() const {
    std::vector<Segment> runs;
    for (const auto& s : segments_)
      for (Index begin = s.begin; begin < s.end; begin += tile_) runs.push_back({begin, std::min(begin + tile_, s.end)});
    return runs;
  }
  // The matrix of all positions, half of it computed, the rest mirrored. `places` are those of the segments within a row:
  // strips of different segments must not overlap, nor those that different threads write.
  void fill_symmetric(Real* matrix, std::size_t length, const std::vector<std::size_t>& places, Monitor& monitor) {
    struct Piece {
      Index first;
      int count;
      std::size_t place;
    };
    std::vector<Piece> pieces;
    const Index width = source_->concurrent() ? 32 : 512;  // narrow ones waste less beyond the diagonal; calls of Python cost more
    for (std::size_t s = 0; s < segments_.size(); ++s)
      for (Index first = segments_[s].begin; first < segments_[s].end; first += width)
        pieces.push_back({first, static_cast<int>(std::min(width, segments_[s].end - first)),
                          places[s] + static_cast<std::size_t>(first - segments_[s].begin)});
    std::vector<Index> everyone(positions());
    std::iota(everyone.begin(), everyone.end(), Index(0));
    const Index chunk = source_->chunk();
    for (Index top = 0; top < positions(); top += chunk) {
      const int rows = static_cast<int>(std::min(chunk, positions() - top));
      source_->prepare(everyone.data() + top, rows);
      run_strips(
          pieces.size(),
          [&](std::size_t t, int thread) {
            const Piece& piece = pieces[t];
            const int wanted = static_cast<int>(std::min<Index>(rows, piece.first + piece.count - top));  // up to the diagonal
            if (wanted <= 0) return;
            std::vector<Real*> out(wanted);
            for (int i = 0; i < wanted; ++i) out[i] = matrix + static_cast<std::size_t>(top + i) * length + piece.place;
            source_->strip(wanted, piece.first, piece.count, out.data(), thread);
          },
          monitor);
    }
    pool_.run(
        pieces.size(),
        [&](std::size_t t, int) {
          const Piece& low = pieces[t];
          for (std::size_t u = 0; u < t; ++u) {
            const Piece& left = pieces[u];
            for (int i = 0; i < low.count; ++i) {
              Real* to = matrix + static_cast<std::size_t>(low.first + i) * length + left.place;
              const Real* from = matrix + static_cast<std::size_t>(left.first) * length + low.place + i;
              for (int j = 0; j < left.count; ++j) to[j] = from[static_cast<std::size_t>(j) * length];
            }
          }
        },
        monitor);
    computed_ += static_cast<long>(positions() * static_cast<Index>(segments_.size()));
  }
  // First touches of small pages would cost as much as the kernel values written to them.
  static void use_large_pages([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    constexpr std::uintptr_t page = std::uintptr_t(2) << 20;
    const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(memory), first = (begin + page - 1) / page * page;
    const std::uintptr_t last = (begin + bytes) / page * page;
    if (last > first) madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
#endif
  }
  int tiles_of(const Segment& segment) const { return static_cast<int>((segment.end - segment.begin + tile_ - 1) / tile_); }
  void compute(const Segment& segment, const std::vector<Index>& positions,
               const std::vector<typename RowCache<Real>::Entry*>& entries, Monitor& monitor) {
    const std::size_t chunk = source_->chunk(), tiles = static_cast<std::size_t>(tiles_of(segment));
    for (std::size_t first = 0; first < positions.size(); first += chunk) {
      const int count = static_cast<int>(std::min(chunk, positions.size() - first));
      source_->prepare(positions.data() + first, count);
      run_strips(
          tiles,
          [&](std::size_t t, int thread) {
            std::vector<Real*> out(count);
            for (int i = 0; i < count; ++i) out[i] = entries[first + i]->tiles[t];
            const Index begin = segment.begin + static_cast<Index>(t) * tile_;
            source_->strip(count, begin, static_cast<int>(std::min<Index>(tile_, segment.end - begin)), out.data(), thread);
          },
          monitor);
    }
  }
  // From rows at hand, on this thread alone: others may be solving problems of their own.
  void subtract_resident(const View& view, const double* x, double* result, Monitor& monitor) {
    std::vector<Index> positions;
    std::vector<double> values, sizes;
    for (Index v = 0; v < view.size(); ++v)
      if (x[v] != 0) positions.push_back(view.position(v)), values.push_back(x[v]), sizes.push_back(std::fabs(x[v]));
    std::vector<Real*> table;
    rows(view, positions, table, monitor);
    const Mirror same(view, result);
    const std::size_t tiles = view.tiles.size(), count = positions.size();
    std::vector<const Real*> mine(count);
    for (std::size_t t = 0; t < view.row_tiles(); ++t) {
      for (std::size_t i = 0; i < count; ++i) mine[i] = table[i * tiles + t];
      subtract_rows(mine.data(), values.data(), sizes.data(), static_cast<int>(count), view.tiles[t].count, result + view.tiles[t].first, nullptr);
    }
  }
  template <class Task>
  void run_strips(std::size_t count, const Task& task, Monitor& monitor) {
    if (source_->concurrent()) return pool_.run(count, task, monitor);
    for (std::size_t t = 0; t < count; ++t) {
      task(t, 0);
      monitor.poll();
    }
  }

  std::unique_ptr<RowSource<Real>> source_;
  std::vector<Segment> segments_;
  int tile_;
  RowCache<Real> cache_;
  ThreadPool& pool_;
  std::vector<double> diagonal_;
  std::vector<Buffer<Real>> workspaces_;
  Buffer<Real> matrix_;              // of all rows, if they are at hand
  std::vector<std::size_t> places_;  // of the segments within such a row
  std::size_t length_ = 0;           // of such a row
  Rounding rounding_{-1};
  Index computed_ = 0;
  bool prefetched_ = false;
};

}  // namespace slimsvm
