// The whole kernel matrix in memory. Half of it is computed, the rest mirrored.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>
#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "cpu/buffer.hpp"
#include "matrix/view.hpp"

namespace slimsvm {

// Of many small segments: every pair of them will need all of its rows, and one product is faster than many. Rows are read where
// they lie, by any number of threads.
template <class Real>
class ResidentMatrix {
 public:
  bool ready() const { return length_ > 0; }

  void compute(RowSource<Real>& source, const std::vector<Segment>& segments, ThreadPool& pool, Monitor& monitor) {
    const Index positions = segments.back().end;
    std::vector<std::size_t> places;
    std::size_t length = 0;
    for (const auto& s : segments) {
      places.push_back(length);
      length += static_cast<std::size_t>(strip_padding(static_cast<int>(s.end - s.begin)));
    }
    const std::size_t size = length * static_cast<std::size_t>(positions);
    Real* matrix = matrix_.reserve(size);
    use_large_pages(matrix, size * sizeof(Real));
    fill(matrix, length, pieces_of(source, segments, places), positions, source, pool, monitor);
    places_ = std::move(places);  // only now: an error leaves nothing half-done
    length_ = length;
  }

  // table[i * tiles + t] = tile t of the row of positions[i] over the view, whose tiles have this length.
  void rows(const View& view, int tile, const std::vector<Index>& positions, std::vector<Real*>& table) const {
    const std::size_t tiles = view.tiles.size(), count = positions.size();
    table.resize(count * tiles);
    for (std::size_t t = 0; t < tiles; ++t) {
      Real* first = matrix_.get() + places_[view.tiles[t].segment] + static_cast<std::size_t>(view.tiles[t].index) * tile;
      for (std::size_t i = 0; i < count; ++i) table[i * tiles + t] = first + static_cast<std::size_t>(positions[i]) * length_;
    }
  }

 private:
  // A run of columns. Those of different segments must not overlap within a row, nor those that different threads write.
  struct ColumnRun {
    Index first;
    int count;
    std::size_t place;  // of its first column within a row
  };
  static std::vector<ColumnRun> pieces_of(const RowSource<Real>& source, const std::vector<Segment>& segments, const std::vector<std::size_t>& places) {
    std::vector<ColumnRun> pieces;
    const Index width = source.concurrent() ? 32 : 512;  // narrow ones waste less beyond the diagonal; calls of Python cost more
    for (std::size_t s = 0; s < segments.size(); ++s)
      for (Index first = segments[s].begin; first < segments[s].end; first += width)
        pieces.push_back({first, static_cast<int>(std::min(width, segments[s].end - first)),
                          places[s] + static_cast<std::size_t>(first - segments[s].begin)});
    return pieces;
  }
  static void fill(Real* matrix, std::size_t length, const std::vector<ColumnRun>& pieces, Index positions, RowSource<Real>& source,
                   ThreadPool& pool, Monitor& monitor) {
    std::vector<Index> everyone(positions);
    std::iota(everyone.begin(), everyone.end(), Index(0));
    const Index chunk = source.chunk();
    for (Index top = 0; top < positions; top += chunk) {
      const int rows = static_cast<int>(std::min(chunk, positions - top));
      source.prepare(everyone.data() + top, rows);
      for_each_strip(
          source, pool, pieces.size(),
          [&](std::size_t t, int thread) {
            const ColumnRun& piece = pieces[t];
            const int wanted = static_cast<int>(std::min<Index>(rows, piece.first + piece.count - top));  // up to the diagonal
            if (wanted <= 0) return;
            std::vector<Real*> out(wanted);
            for (int i = 0; i < wanted; ++i) out[i] = matrix + static_cast<std::size_t>(top + i) * length + piece.place;
            source.strip(wanted, piece.first, piece.count, out.data(), thread);
          },
          monitor);
    }
    pool.run(
        pieces.size(),
        [&](std::size_t t, int) {
          const ColumnRun& low = pieces[t];
          for (std::size_t u = 0; u < t; ++u) {
            const ColumnRun& left = pieces[u];
            for (int i = 0; i < low.count; ++i) {
              Real* to = matrix + static_cast<std::size_t>(low.first + i) * length + left.place;
              const Real* from = matrix + static_cast<std::size_t>(left.first) * length + low.place + i;
              for (int j = 0; j < left.count; ++j) to[j] = from[static_cast<std::size_t>(j) * length];
            }
          }
        },
        monitor);
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

  Buffer<Real> matrix_;
  std::vector<std::size_t> places_;  // of the segments within a row
  std::size_t length_ = 0;           // of a row; 0: nothing is here
};

}  // namespace slimsvm
