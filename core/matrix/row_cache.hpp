// Kernel rows that were computed before, in a bounded arena that grows as dropped rows come back, least recently used out first.
//
// A row is kept by segments (runs of columns, one per class in one-vs-one), each a chain of fixed tiles, so
// that subproblems over different classes share what they have in common and any mix of segments fills
// the same arena without gaps.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <list>
#include <new>
#include <unordered_map>
#include <vector>
#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "cpu/buffer.hpp"

namespace slimsvm {

// Row and segment share 64 bits.
constexpr int segment_bits = 20;
constexpr std::size_t most_segments = std::size_t(1) << segment_bits;

template <class Real>
class RowCache {
 public:
  struct Entry {
    std::uint64_t key;
    std::uint64_t round;  // last round that asked for it: entries of the current round stay
    std::vector<Real*> tiles;
  };

  // The arena has `first` bytes at the start and grows by one row each time an evicted row is requested again, up to
  // `bytes`: time spent on more memory is then in proportion to time spent on computing rows again.
  RowCache(std::size_t bytes, std::size_t first, int tile)
      : tile_(tile), capacity_(tiles_in(bytes)), room_(std::min(capacity_, tiles_in(first))) {}

  std::size_t capacity() const { return capacity_; }  // in tiles: what it may grow to
  std::size_t room() const { return room_; }          // what it has grown to
  void begin_round() { ++round_; }

  // The entry, now the most recent; null if it is not here.
  Entry* find(Index row, int segment) {
    const auto it = index_.find(key(row, segment));
    if (it == index_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, it->second);
    it->second->round = round_;
    return &*it->second;
  }

  // A new entry with room for `tiles` tiles, to be filled by the caller. Room is made by dropping entries
  // of earlier rounds; a round that needs more gets it (the solver sizes its rounds by the capacity).
  Entry* insert(Index row, int segment, int tiles) {
    if (was_dropped(row, segment)) widen(tiles);
    while (used_ + tiles > room_ && !entries_.empty() && entries_.back().round != round_) drop_oldest();
    entries_.push_front(Entry{key(row, segment), round_, {}});
    Entry& entry = entries_.front();
    entry.tiles.reserve(tiles);
    for (int t = 0; t < tiles; ++t) entry.tiles.push_back(take());
    index_[entry.key] = entries_.begin();
    return &entry;
  }

  // Forgets everything: what was being filled when an error ended the round cannot be trusted.
  void clear() {
    while (!entries_.empty()) drop_oldest();
    dropped_.clear();
  }

 private:
  std::size_t tiles_in(std::size_t bytes) const { return std::max<std::size_t>(1, bytes / (tile_ * sizeof(Real))); }
  static std::uint64_t key(Index row, int segment) {
    return static_cast<std::uint64_t>(row) << segment_bits | static_cast<std::uint64_t>(segment);
  }
  void drop_oldest() {
    Entry& last = entries_.back();
    free_.insert(free_.end(), last.tiles.begin(), last.tiles.end());
    used_ -= last.tiles.size();
    index_.erase(last.key);
    if (room_ < capacity_) remember(last.key);
    entries_.pop_back();
  }
  void widen(int tiles) {
    room_ = std::min(capacity_, room_ + tiles);
    if (room_ == capacity_) dropped_.clear();  // at full size: eviction history no longer needed
  }
  bool was_dropped(Index row, int segment) const {
    const auto s = static_cast<std::size_t>(segment), r = static_cast<std::size_t>(row);
    return s < dropped_.size() && r < dropped_[s].size() && dropped_[s][r];
  }
  void remember(std::uint64_t key) {
    const std::size_t s = key & (most_segments - 1), r = key >> segment_bits;
    if (s >= dropped_.size()) dropped_.resize(s + 1);
    if (r >= dropped_[s].size()) dropped_[s].resize(r + 1);
    dropped_[s][r] = true;
  }
  Real* take() {
    ++used_;
    if (free_.empty()) grow();
    Real* tile = free_.back();
    free_.pop_back();
    return tile;
  }
  void grow() {
    constexpr std::size_t page = std::size_t(2) << 20;
    const std::size_t tile_bytes = tile_ * sizeof(Real);
    // Blocks of 32 MB, less for what is left of the capacity and for small problems (they double).
    const std::size_t wish = std::clamp<std::size_t>(owned_, 16, (std::size_t(32) << 20) / tile_bytes + 1);
    const std::size_t count = std::max<std::size_t>(1, std::min(wish, capacity_ > owned_ ? capacity_ - owned_ : 1));
    const bool large = count * tile_bytes >= page;
    blocks_.emplace_back(static_cast<Real*>(::operator new(count * tile_bytes, std::align_val_t(large ? page : 64))),
                         AlignedDelete{large ? page : 64});
    Real* block = blocks_.back().get();
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    // First touches of small pages would cost as much as the kernel values written to them.
    if (large) madvise(block, count * tile_bytes / page * page, MADV_HUGEPAGE);
#endif
    for (std::size_t t = count; t-- > 0;) free_.push_back(block + t * tile_);
    owned_ += count;
  }

  int tile_;
  std::size_t capacity_, room_, used_ = 0, owned_ = 0;  // in tiles
  std::uint64_t round_ = 1;
  std::list<Entry> entries_;
  std::unordered_map<std::uint64_t, typename std::list<Entry>::iterator> index_;
  std::vector<std::vector<bool>> dropped_;  // by segment and row: has it been evicted? Kept while the arena can grow
  std::vector<Real*> free_;
  std::vector<std::unique_ptr<Real, AlignedDelete>> blocks_;
};

}  // namespace slimsvm
