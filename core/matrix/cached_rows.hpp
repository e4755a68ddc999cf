// Rows of a kernel matrix over a view, from the cache or computed: those that are missing are computed together.
#pragma once

#include <algorithm>
#include <vector>

#include "matrix/row_cache.hpp"
#include "matrix/view.hpp"

namespace slimsvm {

template <class Real>
class CachedRows {
 public:
  CachedRows(RowSource<Real>& source, const std::vector<Segment>& segments, int tile, std::size_t cache_bytes, ThreadPool& pool)
      : source_(source), segments_(segments), tile_(tile), cache_(cache_bytes, first_bytes(cache_bytes), tile), pool_(pool) {}

  // Rows over the view that the cache can hold when it has grown, and now.
  Index capacity(const View& view) const { return rows_in(cache_.capacity(), view); }
  Index room(const View& view) const { return rows_in(cache_.room(), view); }
  Index computed() const { return computed_; }  // row segments so far

  // table[i * tiles + t] = tile t of the row of positions[i].
  void rows(const View& view, const std::vector<Index>& positions, std::vector<Real*>& table, Monitor& monitor) {
    const std::size_t tiles = view.tiles.size(), count = positions.size();
    table.resize(count * tiles);
    std::vector<int> distinct(view.segments);
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    std::vector<Entry*> entries(distinct.size() * count);
    cache_.begin_round();
    // Ask for all first, so that no row of this round is dropped to make room for another.
    for (std::size_t d = 0; d < distinct.size(); ++d)
      for (std::size_t i = 0; i < count; ++i) entries[d * count + i] = cache_.find(positions[i], distinct[d]);
    std::vector<Index> missing;
    std::vector<Entry*> fresh;
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

 private:
  using Entry = typename RowCache<Real>::Entry;

  // Initial size: the whole cache, or 1024 rows (at least 64 MiB) if rows are cheap to recompute.
  std::size_t first_bytes(std::size_t bytes) const {
    constexpr std::size_t first_rows = 1024, least = std::size_t(64) << 20;
    if (!source_.cheap()) return bytes;
    return std::max(least, first_rows * static_cast<std::size_t>(segments_.back().end + tile_) * sizeof(Real));
  }
  static Index rows_in(std::size_t tiles, const View& view) {
    return static_cast<Index>(tiles / std::max<std::size_t>(1, view.row_tiles()));
  }
  int tiles_of(const Segment& segment) const { return static_cast<int>((segment.end - segment.begin + tile_ - 1) / tile_); }
  void compute(const Segment& segment, const std::vector<Index>& positions, const std::vector<Entry*>& entries, Monitor& monitor) {
    const std::size_t chunk = source_.chunk(), tiles = static_cast<std::size_t>(tiles_of(segment));
    for (std::size_t first = 0; first < positions.size(); first += chunk) {
      const int count = static_cast<int>(std::min(chunk, positions.size() - first));
      source_.prepare(positions.data() + first, count);
      for_each_strip(
          source_, pool_, tiles,
          [&](std::size_t t, int thread) {
            std::vector<Real*> out(count);
            for (int i = 0; i < count; ++i) out[i] = entries[first + i]->tiles[t];
            const Index begin = segment.begin + static_cast<Index>(t) * tile_;
            source_.strip(count, begin, static_cast<int>(std::min<Index>(tile_, segment.end - begin)), out.data(), thread);
          },
          monitor);
    }
  }

  RowSource<Real>& source_;
  const std::vector<Segment>& segments_;
  int tile_;
  RowCache<Real> cache_;
  ThreadPool& pool_;
  Index computed_ = 0;
};

}  // namespace slimsvm
