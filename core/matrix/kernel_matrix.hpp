// The kernel matrix of a training set, as the dual solvers use it: rows by position, over the variables of a view.
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include "matrix/cached_rows.hpp"
#include "matrix/error_bound.hpp"
#include "matrix/resident_matrix.hpp"
#include "matrix/streamed_products.hpp"

namespace slimsvm {

template <class Real>
class KernelMatrix {
 public:
  using Value = Real;
  // Of the cache's bytes, at most `strip_bytes` may go to strips kept ready.
  KernelMatrix(std::unique_ptr<RowSource<Real>> source, std::vector<Segment> segments, std::size_t cache_bytes, std::size_t strip_bytes,
               ThreadPool& pool)
      : source_(std::move(source)),
        segments_(std::move(segments)),
        tile_(tile_length(segments_)),
        cached_(*source_, segments_, tile_, cache_bytes - source_->plan(tiles(), strip_bytes), pool),
        streamed_(*source_, pool),
        pool_(pool),
        workspaces_(pool.size()) {}

  Index positions() const { return segments_.back().end; }
  View view(const std::vector<int>& chosen) const { return make_view(segments_, chosen, tile_); }
  // All positions in order, and no other problem to share rows with.
  bool covers(const View& view) const { return segments_.size() <= 2 && view.size() == positions() && view.begin[0] == 0; }
  // Rows over the view that can be held at once.
  Index capacity(const View& view) const {
    return resident() ? static_cast<Index>(std::numeric_limits<std::int32_t>::max()) : cached_.capacity(view);
  }
  Index computed() const { return cached_.computed() + computed_; }  // row segments so far: the cost that the cache saves
  ThreadPool& pool() { return pool_; }
  // For the solver's block, reused from problem to problem; each thread has its own.
  Buffer<Real>& workspace(int thread) { return workspaces_[thread]; }

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

  // table[i * tiles + t] = tile t of the row of positions[i] over the view.
  void rows(const View& view, const std::vector<Index>& positions, std::vector<Real*>& table, Monitor& monitor) {
    if (resident())
      resident_.rows(view, tile_, positions, table);
    else
      cached_.rows(view, positions, table, monitor);
  }

  // Computes the whole matrix if it pays: many segments of which two have at most `pair_limit` rows, and room for all.
  void prefetch(Index pair_limit, Monitor& monitor) {
    if (prefetched_ || segments_.size() < 3) return;  // one problem reads its rows once
    prefetched_ = true;
    Index longest = 0;
    for (const auto& s : segments_) longest = std::max(longest, s.end - s.begin);
    std::vector<int> all(segments_.size());
    std::iota(all.begin(), all.end(), 0);
    if (2 * longest > pair_limit || cached_.room(view(all)) < positions()) return;
    diagonal();  // not by several threads at once
    resident_.compute(*source_, segments_, pool_, monitor);
    computed_ += positions() * static_cast<Index>(segments_.size());
  }
  // Are all rows in memory? Then problems over them that are one block each may be solved at the same time.
  bool resident() const { return resident_.ready(); }

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

  // gradient -= K[:, rows] x; its error grows with the distances `farther`.
  void subtract(const View& view, const std::vector<const Real*>& table, const std::vector<double>& x,
                const std::vector<double>& farther, double* gradient, ErrorBound& error, Monitor& monitor) {
    double* weighted = error.add(x, farther, rounding(), view.size()) ? error.weighted.data() : nullptr;
    const std::size_t tiles = view.tiles.size(), count = x.size();
    const TwinUpdate twin(view, gradient), weighted_twin(view, weighted);
    pool_.run(
        view.row_tiles(),
        [&](std::size_t t, int) {
          std::vector<const Real*> rows(count);
          for (std::size_t i = 0; i < count; ++i) rows[i] = table[i * tiles + t];
          const auto& tile = view.tiles[t];
          subtract_rows<Real>(rows.data(), x.data(), farther.data(), static_cast<int>(count), tile.count, gradient + tile.first,
                              weighted ? weighted + tile.first : nullptr);
        },
        monitor);
  }

  // result -= K x over the view, past the cache. The error grows as for a change from 0.
  void subtract_product(const View& view, const double* x, double* result, Monitor& monitor, ErrorBound* error = nullptr) {
    if (resident() && !error) return subtract_resident(view, x, result, monitor);
    bool weigh = false;
    if (error) {
      std::vector<double> all(x, x + view.size()), distances(all);
      for (double& value : distances) value = std::fabs(value);
      weigh = error->add(all, distances, rounding(), view.size());
    }
    streamed_.subtract(view, x, result, weigh ? error->weighted.data() : nullptr, monitor);
  }
  bool subtract_product_at(const View& view, const double* x, const std::vector<Index>& some, double* result, Monitor& monitor) {
    return streamed_.subtract_at(view, x, some, result, monitor);
  }
  void add_symmetric_product(const View& view, const double* x, int outputs, double* out, Monitor& monitor) {
    streamed_.add_symmetric(view, x, outputs, out, monitor);
  }
  void copy_rows(const View& view, const std::vector<Index>& variables, double* out, Monitor& monitor) {
    streamed_.copy_rows(view, tile_, variables, out, monitor);
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

 private:
  std::vector<Segment> tiles() const {
    std::vector<Segment> runs;
    for (const auto& s : segments_)
      for (Index begin = s.begin; begin < s.end; begin += tile_) runs.push_back({begin, std::min(begin + tile_, s.end)});
    return runs;
  }
  // From rows in memory, on this thread alone: others may be solving problems of their own.
  void subtract_resident(const View& view, const double* x, double* result, Monitor& monitor) {
    std::vector<Index> positions;
    std::vector<double> values, sizes;
    for (Index v = 0; v < view.size(); ++v)
      if (x[v] != 0) positions.push_back(view.position(v)), values.push_back(x[v]), sizes.push_back(std::fabs(x[v]));
    std::vector<Real*> table;
    rows(view, positions, table, monitor);
    const TwinUpdate twin(view, result);
    const std::size_t tiles = view.tiles.size(), count = positions.size();
    std::vector<const Real*> mine(count);
    for (std::size_t t = 0; t < view.row_tiles(); ++t) {
      for (std::size_t i = 0; i < count; ++i) mine[i] = table[i * tiles + t];
      subtract_rows<Real>(mine.data(), values.data(), sizes.data(), static_cast<int>(count), view.tiles[t].count, result + view.tiles[t].first, nullptr);
    }
  }

  std::unique_ptr<RowSource<Real>> source_;
  std::vector<Segment> segments_;
  int tile_;
  CachedRows<Real> cached_;
  ResidentMatrix<Real> resident_;
  StreamedProducts<Real> streamed_;
  ThreadPool& pool_;
  std::vector<double> diagonal_;
  std::vector<Buffer<Real>> workspaces_;
  Rounding rounding_{-1};
  Index computed_ = 0;  // past the cache
  bool prefetched_ = false;
};

}  // namespace slimsvm
