// Products with a kernel matrix past the cache: every row is computed afresh, used once, and forgotten.
#pragma once

#include <algorithm>
#include <atomic>
#include <vector>

#include "linalg/row_sums.hpp"
#include "matrix/view.hpp"

namespace slimsvm {

// y -= rows' x, and z += rows' w unless z is null.
template <class Real>
void subtract_rows(const Real* const* rows, const double* x, const double* w, int count, Index length, double* y, double* z) {
  if (z)
    dispatch<SubtractAndWeigh<Real>>(rows, x, w, count, length, y, z);
  else
    dispatch<SubtractRows<Real>>(rows, x, count, length, y);
}

template <class Real>
class StreamedProducts {
 public:
  StreamedProducts(RowSource<Real>& source, ThreadPool& pool) : source_(source), pool_(pool) {}

  // result -= K x, and weighted += K |x| unless it is null.
  void subtract(const View& view, const double* x, double* result, double* weighted, Monitor& monitor) {
    const TwinUpdate twin(view, result), weighted_twin(view, weighted);
    std::vector<Index> columns, target;  // starts of strips: positions and variables
    std::vector<int> length;
    for (std::size_t t = 0; t < view.row_tiles(); ++t)
      for (int c = 0; c < view.tiles[t].count; c += strip_length) {
        const auto& tile = view.tiles[t];
        columns.push_back(tile.position + c);
        target.push_back(tile.first + c);
        length.push_back(std::min(strip_length, tile.count - c));
      }
    for_strips(view, x, columns.size(), monitor, [&](std::size_t t, int rows, Real* const* out, const double* values, int thread) {
      source_.strip(rows, columns[t], length[t], out, thread);
      std::vector<double> sizes(values, values + rows);
      for (double& value : sizes) value = std::fabs(value);
      subtract_rows<Real>(out, values, sizes.data(), rows, length[t], result + target[t], weighted ? weighted + target[t] : nullptr);
    });
  }

  // result -= K x for some of the variables only, of a row's two variables both or none; false where the source cannot do that.
  bool subtract_at(const View& view, const double* x, const std::vector<Index>& some, double* result, Monitor& monitor) {
    std::atomic<bool> possible{true};
    const std::vector<Index> variables(some.begin(), std::lower_bound(some.begin(), some.end(), view.rows()));
    const TwinUpdate twin(view, result);
    const std::size_t strips = (variables.size() + strip_length - 1) / strip_length;
    for_strips(view, x, strips, monitor, [&](std::size_t t, int rows, Real* const* out, const double* values, int thread) {
      const Index* first = variables.data() + t * strip_length;
      const int count = static_cast<int>(std::min<std::size_t>(strip_length, variables.size() - t * strip_length));
      Index positions[strip_length] = {};
      double sum[strip_length] = {};
      for (int j = 0; j < count; ++j) positions[j] = view.position(first[j]);
      if (!source_.gather(rows, positions, count, out, thread)) {
        possible = false;
        return;
      }
      dispatch<SubtractRows<Real>>(static_cast<const Real* const*>(out), values, rows, static_cast<Index>(count), static_cast<double*>(sum));
      for (int j = 0; j < count; ++j) result[first[j]] += sum[j];
    });
    return possible;
  }

  // out[o] += K x[o] for several x. K is symmetric: a block beyond the diagonal serves its rows and its columns.
  void add_symmetric(const View& view, const double* x, int outputs, double* out, Monitor& monitor) {
    const Index n = view.size();
    struct ViewStrip {
      Index position, first;
      int count;
    };
    std::vector<ViewStrip> pieces;
    for (const auto& tile : view.tiles)
      for (int c = 0; c < tile.count; c += strip_length)
        pieces.push_back({tile.position + c, tile.first + c, std::min(strip_length, tile.count - c)});
    constexpr std::size_t groups = 32;  // of pieces: each with sums of its own, so that threads change no rounding
    std::vector<Buffer<Real>> buffers(pool_.size());
    std::vector<std::vector<double>> sums(groups);
    std::vector<Index> positions;
    // Rows of as many whole pieces as may be prepared together; at least of one.
    const std::size_t together = std::clamp(source_.chunk() / strip_length, 1, 4);
    for (std::size_t start = 0; start < pieces.size(); start += together) {
      const std::size_t beyond = std::min(start + together, pieces.size());
      const Index top = pieces[start].first;
      const int rows = static_cast<int>((beyond < pieces.size() ? pieces[beyond].first : n) - top);
      positions.clear();
      for (int i = 0; i < rows; ++i) positions.push_back(view.position(top + i));
      source_.prepare(positions.data(), rows);
      for (auto& s : sums) s.assign(static_cast<std::size_t>(rows) * outputs, 0.0);
      const auto use = [&](std::size_t t, double* sum, int thread) {
        const ViewStrip& piece = pieces[t];
        const std::vector<Real*> strip = strips_in(buffers[thread], rows, strip_length);
        source_.strip(rows, piece.position, piece.count, strip.data(), thread);
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
      for_each_strip(
          source_, pool_, groups,
          [&](std::size_t g, int thread) {
            for (std::size_t t = start + g; t < pieces.size(); t += groups) use(t, sums[g].data(), thread);
          },
          monitor);
      for (const auto& s : sums)
        for (int o = 0; o < outputs; ++o)
          for (int i = 0; i < rows; ++i) out[o * n + top + i] += s[static_cast<std::size_t>(o) * rows + i];
    }
  }

  // Rows of the view's matrix, one after the other; no tile of the view is longer than `tile_length`.
  void copy_rows(const View& view, int tile_length, const std::vector<Index>& variables, double* out, Monitor& monitor) {
    const std::size_t chunk = std::min(source_.chunk(), 512), tiles = view.tiles.size();
    std::vector<Buffer<Real>> buffers(pool_.size());
    std::vector<Index> positions;
    for (const Index v : variables) positions.push_back(view.position(v));
    for (std::size_t top = 0; top < positions.size(); top += chunk) {
      const int rows = static_cast<int>(std::min(chunk, positions.size() - top));
      source_.prepare(positions.data() + top, rows);
      for_each_strip(
          source_, pool_, tiles,
          [&](std::size_t t, int thread) {
            const auto& tile = view.tiles[t];
            const std::vector<Real*> strip = strips_in(buffers[thread], rows, tile_length);
            source_.strip(rows, tile.position, tile.count, strip.data(), thread);
            for (int i = 0; i < rows; ++i)
              std::copy(strip[i], strip[i] + tile.count, out + (top + i) * static_cast<std::size_t>(view.size()) + tile.first);
          },
          monitor);
    }
  }

 private:
  static constexpr int strip_length = 128;

  static std::vector<Real*> strips_in(Buffer<Real>& buffer, int rows, int length) {
    Real* block = buffer.reserve(static_cast<std::size_t>(rows) * length);
    std::vector<Real*> strips(rows);
    for (int i = 0; i < rows; ++i) strips[i] = block + static_cast<std::size_t>(i) * length;
    return strips;
  }

  // use(strip, rows, out, values, thread) for chunks of the rows where x is not zero; out has room for a strip.
  template <class Use>
  void for_strips(const View& view, const double* x, std::size_t strips, Monitor& monitor, const Use& use) {
    std::vector<Index> positions;
    std::vector<double> values;
    const Index n = view.rows();
    for (Index v = 0; v < n; ++v)
      if (const double value = view.twice ? x[v] + x[n + v] : x[v]; value != 0) {
        positions.push_back(view.position(v));
        values.push_back(value);
      }
    const std::size_t chunk = std::min(source_.chunk(), 512);
    std::vector<Buffer<Real>> buffers(pool_.size());
    for (std::size_t first = 0; first < positions.size(); first += chunk) {
      const int count = static_cast<int>(std::min(chunk, positions.size() - first));
      source_.prepare(positions.data() + first, count);
      for_each_strip(
          source_, pool_, strips,
          [&](std::size_t t, int thread) {
            const std::vector<Real*> out = strips_in(buffers[thread], count, strip_length);
            use(t, count, out.data(), static_cast<const double*>(values.data() + first), thread);
          },
          monitor);
    }
  }

  RowSource<Real>& source_;
  ThreadPool& pool_;
};

}  // namespace slimsvm
