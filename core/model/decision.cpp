#include "model/decision.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "linalg/row_sums.hpp"

namespace slimsvm {

double float_error(const AnyKernel& kernel, const Rows& vectors, const Rows& x, const double* coef, int outputs) {
  double weight = 0;
  for (int o = 0; o < outputs; ++o) {
    double sum = 0;
    for (Index j = 0; j < vectors.size; ++j) sum += coef[o * vectors.size + j] * coef[o * vectors.size + j];
    weight = std::max(weight, std::sqrt(sum));
  }
  return 2 * std::numeric_limits<float>::epsilon() * (1 + kernel->float_loss(vectors, x.density() < sparse_below)) * weight;
}

template <class Real>
void decision(const AnyKernel& kernel, const Rows& vectors, const Rows& x, const double* coef, const double* bias,
              int outputs, double* out, ThreadPool& pool, Monitor& monitor) {
  constexpr Index strip = 128;
  const auto blocks = kernel->blocks(Real(), x.width, x.density() < sparse_below);
  std::vector<Index> vector_ids(vectors.size), ids(x.size);
  std::iota(vector_ids.begin(), vector_ids.end(), Index(0));
  std::iota(ids.begin(), ids.end(), Index(0));
  for (Index i = 0; i < x.size; ++i) std::copy(bias, bias + outputs, out + i * outputs);

  const int chunk = blocks->chunk(vectors.width);
  PackedLeft<Real> left;
  struct DecisionScratch {
    BlockScratch<Real> scratch;
    Buffer<Real> block;
  };
  std::vector<DecisionScratch> local(pool.size());
  for (Index first = 0; first < vectors.size; first += chunk) {
    const int count = static_cast<int>(std::min<Index>(chunk, vectors.size - first));
    blocks->prepare(vectors, vector_ids.data() + first, count, left);
    // Coefficients that are zero cost nothing: one-vs-one models use few vectors for each output.
    std::vector<std::vector<int>> used(outputs);
    std::vector<std::vector<double>> minus(outputs);
    for (int o = 0; o < outputs; ++o)
      for (int i = 0; i < count; ++i)
        if (const double c = coef[o * vectors.size + first + i]; c != 0) used[o].push_back(i), minus[o].push_back(-c);
    pool.run(
        static_cast<std::size_t>((x.size + strip - 1) / strip),
        [&](std::size_t t, int thread) {
          const Index begin = static_cast<Index>(t) * strip;
          const int columns = static_cast<int>(std::min(strip, x.size - begin));
          DecisionScratch& mine = local[thread];
          Real* values = mine.block.reserve(static_cast<std::size_t>(count) * strip);
          blocks->pack(x, ids.data() + begin, columns, mine.scratch.strip);
          std::vector<Real*> rows(count);
          for (int i = 0; i < count; ++i) rows[i] = values + i * strip;
          blocks->evaluate(left, count, mine.scratch.strip, x.width, 0, columns, rows.data(), mine.scratch);
          std::vector<const Real*> chosen;
          double sum[strip];
          for (int o = 0; o < outputs; ++o) {
            if (used[o].empty()) continue;
            chosen.clear();
            for (const int i : used[o]) chosen.push_back(rows[i]);
            std::fill(sum, sum + columns, 0.0);
            dispatch<SubtractRows<Real>>(static_cast<const Real* const*>(chosen.data()),
                                         static_cast<const double*>(minus[o].data()), static_cast<int>(chosen.size()),
                                         static_cast<Index>(columns), static_cast<double*>(sum));
            for (int j = 0; j < columns; ++j) out[(begin + j) * outputs + o] += sum[j];
          }
        },
        monitor);
  }
}

template void decision<float>(const AnyKernel&, const Rows&, const Rows&, const double*, const double*, int, double*, ThreadPool&, Monitor&);
template void decision<double>(const AnyKernel&, const Rows&, const Rows&, const double*, const double*, int, double*, ThreadPool&, Monitor&);

}  // namespace slimsvm
