// The variables of a problem, and where their rows lie in a kernel matrix.
//
// A view is a list of segments; its variables are their concatenation. One segment: all points. Two: the two classes of a
// one-vs-one problem. The same segments twice: two variables for each row, as in regression.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/blocks.hpp"
#include "matrix/row_source.hpp"

namespace slimsvm {

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

// Where a view has two variables for each row, changes of the first one's value between construction and destruction are made to
// the second one's, too.
class TwinUpdate {
 public:
  TwinUpdate(const View& view, double* values) {
    if (!view.twice || !values) return;
    values_ = values;
    before_.assign(values, values + view.rows());
  }
  TwinUpdate(const TwinUpdate&) = delete;
  TwinUpdate& operator=(const TwinUpdate&) = delete;
  ~TwinUpdate() {
    for (std::size_t v = 0; v < before_.size(); ++v) values_[before_.size() + v] += values_[v] - before_[v];
  }

 private:
  double* values_ = nullptr;
  std::vector<double> before_;
};

}  // namespace slimsvm
