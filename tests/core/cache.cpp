// The row cache: it starts small where rows are cheap, grows as dropped rows come back, and never beyond its limit.
#include "check.hpp"
#include "kernels/kernels.hpp"
#include "matrix/kernel_matrix.hpp"
#include "matrix/sources.hpp"

namespace tests {

using namespace slimsvm;

constexpr int tile = 64;
constexpr std::size_t row_bytes = tile * sizeof(float);

// Asks for rows [0, count) one round each. How many had to be computed; what is kept must be what was put there.
int pass(RowCache<float>& cache, Index count, const std::string& name) {
  int computed = 0;
  for (Index row = 0; row < count; ++row) {
    cache.begin_round();
    auto* entry = cache.find(row, 0);
    if (!entry) {
      ++computed;
      entry = cache.insert(row, 0, 1);
      std::fill_n(entry->tiles[0], tile, static_cast<float>(row));
    }
    check(entry->tiles[0][0] == static_cast<float>(row) && entry->tiles[0][tile - 1] == static_cast<float>(row), name, ": a row's values");
  }
  return computed;
}

// Of rows [0, count), those that are in the cache.
Index kept(RowCache<float>& cache, Index count) {
  Index found = 0;
  for (Index row = 0; row < count; ++row) found += cache.find(row, 0) != nullptr;
  return found;
}

void growth() {
  RowCache<float> fresh(100 * row_bytes, 10 * row_bytes, tile);
  check(pass(fresh, 60, "new rows") == 60 && fresh.room() == 10 && kept(fresh, 60) == 10, "rows that are new take no more room");

  RowCache<float> cache(100 * row_bytes, 10 * row_bytes, tile);
  int computed = 0, last = -1;
  for (int again = 0; again < 4; ++again) computed += last = pass(cache, 60, "a cache that grows");
  check(last == 0, "rows that come back are kept in the end");
  check(computed <= 60 + 2 * 50, "room is found by computing few rows twice");
  check(kept(cache, 60) == 60 && cache.room() < 100, "a cache takes what it needs");

  for (int again = 0; again < 6; ++again) last = pass(cache, 300, "a full cache");
  check(last == 300 && cache.room() == 100 && cache.capacity() == 100 && kept(cache, 300) == 100, "a cache stays below its limit");

  cache.clear();
  check(kept(cache, 300) == 0 && pass(cache, 100, "a cleared cache") == 100 && pass(cache, 100, "a cleared cache") == 0, "a cleared cache starts anew");
}

// Rows of a view, in rounds; the same bits whatever the cache may hold, and none computed again once there is room.
void rows_of_kernels() {
  constexpr Index n = 5000, used = 4000, together = 250;
  const auto table = dense<double>(numbers(n, 2, 1.0, 5), n, 2);
  std::vector<Index> order(n);
  std::iota(order.begin(), order.end(), Index(0));
  ThreadPool pool(1);
  Monitor monitor;
  const auto make = [&](std::size_t megabytes) {
    return std::make_unique<KernelMatrix<float>>(
        std::make_unique<KernelRows<float>>(std::shared_ptr<const Rows>(table.rows.get(), [](const Rows*) {}), order, gaussian(1.0), false, 1),
        std::vector<Segment>{{0, n}}, megabytes << 20, 0, pool);
  };
  const auto read = [&](KernelMatrix<float>& kernel_matrix, double& sum) {
    const View view = kernel_matrix.view({0});
    const Index before = kernel_matrix.computed();
    std::vector<float*> rows;
    for (Index first = 0; first < used; first += together) {
      std::vector<Index> positions(together);
      std::iota(positions.begin(), positions.end(), first);
      kernel_matrix.rows(view, positions, rows, monitor);
      for (Index i = 0; i < together; ++i)
        for (std::size_t t = 0; t < view.tiles.size(); ++t) sum += rows[i * view.tiles.size() + t][(i + first) % view.tiles[t].count];
    }
    return kernel_matrix.computed() - before;
  };
  const auto large = make(400), small = make(4);
  double kept_sum = 0, dropped_sum = 0;
  Index computed = 0, last = 0;
  for (int again = 0; again < 3; ++again) computed += last = read(*large, kept_sum), read(*small, dropped_sum);
  check(last == 0, "rows that are cheap are kept in a cache with room for them");
  check(computed < 2 * used, "and few are computed twice until then");
  check(kept_sum == dropped_sum, "values do not depend on the cache");
}

void row_cache() {
  growth();
  rows_of_kernels();
}

}  // namespace tests
