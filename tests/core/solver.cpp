// The solver: its duals are feasible, and a gap computed by the formulas is what it promised.
#include "check.hpp"
#include "reference.hpp"
#include "learning/smooth_newton.hpp"
#include "matrix/sources.hpp"
#include "smo/solver.hpp"

namespace tests {

using namespace slimsvm;

class TestMatrices final : public KernelMatrices {
 public:
  TestMatrices(std::shared_ptr<const Rows> rows, const AnyKernel& kernel, int threads, std::size_t cache)
      : rows_(std::move(rows)), kernel_(kernel), cache_(cache), threads_(threads), pool_(threads) {}
  KernelMatrix<float>& in_float() override { return get(single_); }
  KernelMatrix<double>& in_double() override { return get(full_); }
  void release_float() override { single_.reset(); }

 private:
  template <class Real>
  KernelMatrix<Real>& get(std::unique_ptr<KernelMatrix<Real>>& matrix) {
    std::vector<Index> order(static_cast<std::size_t>(rows_->size));
    std::iota(order.begin(), order.end(), Index(0));
    if (!matrix)
      matrix = std::make_unique<KernelMatrix<Real>>(std::make_unique<KernelRows<Real>>(rows_, order, kernel_, rows_->density() < 0.3, threads_),
                                          std::vector<Segment>{{0, rows_->size}}, cache_, cache_ / 4, pool_);
    return *matrix;
  }
  std::shared_ptr<const Rows> rows_;
  AnyKernel kernel_;
  std::size_t cache_;
  int threads_;
  ThreadPool pool_;
  std::unique_ptr<KernelMatrix<float>> single_;
  std::unique_ptr<KernelMatrix<double>> full_;
};

// Two classes that overlap, and the parts of a problem over them.
struct Setting {
  Index n, width = 3;
  std::vector<double> x, y, lower, upper, ridge;
  explicit Setting(Index size, double C, double penalty = 0) : n(size), x(numbers(size, 3, 1.0, 9)), ridge(size, penalty) {
    Random random(10);
    for (Index i = 0; i < n; ++i) {
      const double score = x[i * width] * x[i * width + 1] + 0.3 * random.symmetric();
      y.push_back(score > 0 ? 1.0 : -1.0);
      lower.push_back(y[i] > 0 ? 0.0 : -C);
      upper.push_back(y[i] > 0 ? C : 0.0);
    }
  }
  Problem problem(double total = infinity, double power = 2) const {
    return {n, y.data(), lower.data(), upper.data(), ridge.data(), y.data(), total, power};
  }
};

std::vector<double> product(const Setting& s, const KernelCase& kernel, const std::vector<double>& a) {
  std::vector<double> out(a.size(), 0.0);
  for (Index j = 0; j < s.n; ++j)
    if (a[j] != 0)
      for (Index i = 0; i < s.n; ++i) out[i] += a[j] * kernel.value(s.x.data() + i * s.width, s.x.data() + j * s.width, s.width);
  return out;
}

template <class Set>
void certified(const Setting& s, const Problem& given, const KernelCase& kernel, const Solution& found, double tolerance, const std::string& name) {
  const SafeBounds bounds(given);
  Problem p = given;
  p.lower = bounds.lower.data(), p.upper = bounds.upper.data();
  double sum = 0, sizes = 0;
  bool inside = true;
  for (Index i = 0; i < p.size; ++i) {
    sum += found.a[i], sizes += std::fabs(found.a[i]);
    inside = inside && found.a[i] >= p.lower[i] && found.a[i] <= p.upper[i];
  }
  check(found.converged, name + ": converged");
  check(inside, name + ": duals within their bounds");
  check_near(sum, 0, 1e-9 * (1 + sizes), name + ": duals that sum to zero");
  if (p.total < infinity) check(sizes <= p.total * (1 + 1e-9), name + ": duals under the cap");
  const std::vector<double> f = product(s, kernel, found.a);
  std::vector<double> G(f.size());
  for (Index i = 0; i < p.size; ++i) G[i] = p.linear[i] - f[i] - p.slope(i, found.a[i]);
  check(Set(p).certify(found.a.data(), G.data()).relative() <= 1.01 * tolerance, name + ": the gap of the duals");
}

template <class Set>
void solved(const Setting& s, const Problem& p, const KernelCase& kernel, bool use_double, std::size_t cache, const std::string& name) {
  const auto table = dense<double>(s.x, s.n, s.width);
  const std::shared_ptr<const Rows> rows(table.rows.get(), [](const Rows*) {});
  Options options;
  options.tolerance = 1e-4;
  SolverMonitor monitor;
  std::vector<Solution> found;
  for (const int workers : {1, 3}) {
    TestMatrices matrices(rows, kernel.kernel, workers, cache);
    found.push_back(solve(matrices, {0}, p, options, use_double, {}, monitor));
  }
  check(found[0].a == found[1].a, name + ": threads change no dual");
  certified<Set>(s, p, kernel, found[0], options.tolerance, name);
}

// The derivative of a smooth problem's objective is zero where it ends.
void smooth() {
  const int n = 150, m = 7;
  const auto features = numbers(n, m, 1.0, 11);
  Random random(12);
  std::vector<double> y(n), c(n, 2.0);
  for (double& sign : y) sign = random.symmetric() > 0 ? 1.0 : -1.0;
  const SmoothProblem problem{features.data(), n, m, y.data(), c.data(), {1.0, 0.0, std::numeric_limits<double>::infinity()}};
  SmoothSolution found;
  found.w.assign(m + 1, 0.0);
  found.f.resize(n);
  smooth_newton(problem, 1e-12, 100, found);
  check(found.converged, "the smooth problem converged");
  std::vector<double> gradient(found.w);
  gradient[m] = 0;
  for (int i = 0; i < n; ++i) {
    double f = found.w[m];
    for (int j = 0; j < m; ++j) f += found.w[j] * features[i * m + j];
    check_near(found.f[i], f, 1e-12, "values of the smooth problem");
    const double a = c[i] * y[i] * LabelLoss(problem.loss).slope(1 - y[i] * f);
    for (int j = 0; j < m; ++j) gradient[j] -= a * features[i * m + j];
    gradient[m] -= a;
  }
  for (const double g : gradient) check_near(g, 0, 1e-6, "the smooth problem's gradient");
}

void solver() {
  constexpr std::size_t roomy = std::size_t(64) << 20, tight = std::size_t(1) << 20;
  const KernelCase gaussian = gaussian_case(2.0), laplacian = laplacian_case(0.5);
  const Setting few(150, 10.0), many(800, 5.0), free(800, infinity, 0.5), steep(200, infinity, 0.5);
  solved<Box>(few, few.problem(), gaussian, false, roomy, "few rows");
  solved<Box>(few, few.problem(), linear_case(), false, roomy, "few rows, linear");
  solved<Box>(many, many.problem(), gaussian, false, roomy, "float rows");
  solved<Box>(many, many.problem(), laplacian, true, roomy, "double rows");
  solved<Box>(many, many.problem(), gaussian, false, tight, "a small cache");
  solved<Box>(free, free.problem(), gaussian, false, roomy, "squared slacks");
  solved<CappedBox>(many, many.problem(100.0), gaussian, false, roomy, "a cap");
  solved<Box>(steep, steep.problem(infinity, 3), gaussian, false, roomy, "cubes of duals");
  smooth();
}

}  // namespace tests
