// Where rows of a kernel matrix come from: a kernel over data, a matrix that was given, a function of the user's.
//
// A row has a column for each position; positions are runs (segments) of rows of the data, one for each class.
#pragma once

#include <limits>
#include <vector>

#include "cpu/threads.hpp"
#include "kernels/forms.hpp"

namespace slimsvm {

struct Segment {
  Index begin, end;
};

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

// task(strip, thread) for each strip, on all threads if the source allows it.
template <class Real, class Task>
void for_each_strip(const RowSource<Real>& source, ThreadPool& pool, std::size_t count, const Task& task, Monitor& monitor) {
  if (source.concurrent()) return pool.run(count, task, monitor);
  for (std::size_t t = 0; t < count; ++t) {
    task(t, 0);
    monitor.poll();
  }
}

}  // namespace slimsvm
