#include "kernels/values.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace slimsvm {

template <class Real, class Out>
void kernel_into(const AnyKernel& kernel, const Rows& x, const Rows& z, Out* out, int threads, Monitor& monitor) {
  constexpr Index strip = 128;
  const Index n = x.size, m = z.size;
  ThreadPool pool(static_cast<int>(std::min<Index>(threads, std::max<Index>(1, n / strip))));
  const auto blocks = kernel->blocks(Real(), x.width, x.density() < sparse_below);
  std::vector<Index> left_ids(m), ids(n);
  std::iota(left_ids.begin(), left_ids.end(), Index(0));
  std::iota(ids.begin(), ids.end(), Index(0));
  struct ValueScratch {
    BlockScratch<Real> scratch;
    Buffer<Real> block;
  };
  std::vector<ValueScratch> local(pool.size());
  PackedLeft<Real> left;
  const Index chunk = blocks->chunk(x.width);
  for (Index first = 0; first < m; first += chunk) {
    const int count = static_cast<int>(std::min(chunk, m - first));
    blocks->prepare(z, left_ids.data() + first, count, left);
    pool.run(
        static_cast<std::size_t>((n + strip - 1) / strip),
        [&](std::size_t t, int thread) {
          const Index begin = static_cast<Index>(t) * strip;
          const int columns = static_cast<int>(std::min(strip, n - begin));
          ValueScratch& mine = local[thread];
          Real* values = mine.block.reserve(static_cast<std::size_t>(count) * strip);
          std::vector<Real*> rows(count);
          for (int j = 0; j < count; ++j) rows[j] = values + j * strip;
          blocks->pack(x, ids.data() + begin, columns, mine.scratch.strip);
          blocks->evaluate(left, count, mine.scratch.strip, x.width, 0, columns, rows.data(), mine.scratch);
          for (int i = 0; i < columns; ++i) {
            Out* row = out + (begin + i) * m + first;
            for (int j = 0; j < count; ++j) row[j] = static_cast<Out>(rows[j][i]);
          }
        },
        monitor);
  }
}

template void kernel_into<float, float>(const AnyKernel&, const Rows&, const Rows&, float*, int, Monitor&);
template void kernel_into<double, float>(const AnyKernel&, const Rows&, const Rows&, float*, int, Monitor&);
template void kernel_into<double, double>(const AnyKernel&, const Rows&, const Rows&, double*, int, Monitor&);

}  // namespace slimsvm
