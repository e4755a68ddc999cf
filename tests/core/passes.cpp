// Passes over rows against sums that are written as the formulas say; the same bits whatever the number of threads.
#include "check.hpp"
#include "learning/newton_over_passes.hpp"
#include "learning/passes.hpp"
#include "reference.hpp"

namespace tests {

using namespace slimsvm;

namespace {

constexpr Index width = 5;
constexpr int vectors_count = 7, outputs = 2, classes = 3;

struct Sums {
  std::vector<double> value, moments, grams, products, inputs;
  bool operator==(const Sums& other) const {
    return value == other.value && moments == other.moments && grams == other.grams && products == other.products && inputs == other.inputs;
  }
};

struct Problem {
  std::vector<double> x, z, T, w, beta, counts, targets;
  std::vector<std::int8_t> codes;
  Index n;

  Problem(Index rows, double density) : n(rows) {
    x = numbers(n, width, density, 1);
    z = numbers(vectors_count, width, 1.0, 2);
    T = numbers(vectors_count, vectors_count, 1.0, 3);
    for (int i = 0; i < vectors_count; ++i)
      for (int j = 0; j < i; ++j) T[i * vectors_count + j] = 0;  // as a whitening is
    w = numbers(outputs, vectors_count + 1, 1.0, 4);
    beta = numbers(vectors_count, outputs, 1.0, 5);
    counts = numbers(n, 1, 1.0, 6);
    for (double& count : counts) count = 1.5 + count;
    targets = numbers(n, outputs, 1.0, 7);
    for (Index i = 0; i < n; ++i) codes.push_back(static_cast<std::int8_t>(i % classes));
  }
  Labels labels(bool of_targets) const {
    Labels found;
    found.counts = counts.data();
    found.outputs = outputs;
    if (of_targets) {
      found.sides = targets.data();
      found.cost = {2, 1};
      return found;
    }
    found.codes = codes.data();
    found.code_bytes = 1;
    found.side = {1, 1, -1, 0, 0, -1};
    found.cost = {2, 1, 2, 0, 0, 1};
    return found;
  }
};

template <class Real>
Sums passed(const Problem& problem, std::shared_ptr<Rows> rows, const Rows& z, const AnyKernel& kernel, QuadraticLoss loss, int threads,
            std::size_t keep) {
  const auto made = make_passes<Real>(rows, problem.labels(loss.targets), threads, keep);
  AnyPasses& passes = *made;
  passes.set_features(rows, kernel, z, problem.T.data(), vectors_count);
  Monitor monitor;
  const int size = vectors_count + 1;
  Sums found{std::vector<double>(outputs), std::vector<double>(outputs * size), std::vector<double>(outputs * size * size),
             std::vector<double>(vectors_count * (width + 1)), std::vector<double>(width)};
  std::vector<double> again(outputs);
  passes.equations({0, 1}, problem.w.data(), loss, found.value.data(), found.moments.data(), found.grams.data(), monitor);
  passes.pullback({0, 1}, problem.w.data(), problem.beta.data(), loss, again.data(), found.products.data(), found.inputs.data(), monitor);
  check(again == found.value, "losses of both passes");
  return found;
}

template <class Loss>
Sums expected(const Problem& problem, const KernelCase& kernel, QuadraticLoss given) {
  const Loss loss(given);
  const int size = vectors_count + 1;
  const Labels labels = problem.labels(given.targets);
  Sums sums{std::vector<double>(outputs), std::vector<double>(outputs * size), std::vector<double>(outputs * size * size),
            std::vector<double>(vectors_count * (width + 1)), std::vector<double>(width)};
  for (Index i = 0; i < problem.n; ++i) {
    const double* x = problem.x.data() + i * width;
    std::vector<double> k(vectors_count), p(size, 1.0);
    for (int j = 0; j < vectors_count; ++j) k[j] = kernel.value(x, problem.z.data() + j * width, width);
    for (int f = 0; f < vectors_count; ++f) {
      p[f] = 0;
      for (int j = 0; j < vectors_count; ++j) p[f] += k[j] * problem.T[j * vectors_count + f];
    }
    for (int o = 0; o < outputs; ++o) {
      const int code = given.targets ? 0 : labels.code(i);
      const double y = given.targets ? labels.sides[i * outputs + o] : labels.side[code * outputs + o];
      const double c = labels.cost[code * outputs + o] * labels.count(i);
      double decision = 0;
      for (int f = 0; f < size; ++f) decision += problem.w[o * size + f] * p[f];
      const double xi = given.targets ? y - decision : 1 - y * decision, a = c * (given.targets ? 1 : y) * loss.slope(xi);
      const double h = loss.curved(xi) ? c / loss.width : 0.0;
      sums.value[o] += c * loss.value(xi);
      for (int f = 0; f < size; ++f) {
        sums.moments[o * size + f] += a * p[f];
        for (int g = 0; g < size; ++g) sums.grams[(o * size + f) * size + g] += h * p[f] * p[g];
      }
      for (int j = 0; j < vectors_count; ++j) {
        const double m = -a * problem.beta[j * outputs + o] * k[j];  // the Gaussian's slope is its value, but for a factor
        for (int d = 0; d <= width; ++d) sums.products[j * (width + 1) + d] += m * (d < width ? x[d] : 1.0);
        for (int d = 0; d < width; ++d) sums.inputs[d] += m * x[d] * x[d];
      }
    }
  }
  return sums;
}

void compare(const std::vector<double>& found, const std::vector<double>& wanted, double unit, const std::string& name, const char* what) {
  double largest = 0;
  for (const double v : wanted) largest = std::max(largest, std::fabs(v));
  for (std::size_t k = 0; k < wanted.size(); ++k) check_near(found[k], wanted[k], unit * largest, name, what);
}

template <class Real>
void one(Index n, bool listed) {
  const Problem problem(n, listed ? 0.2 : 1.0);
  const auto x = listed ? sparse<Real>(problem.x, n, width) : dense<Real>(problem.x, n, width);
  const auto z = dense<Real>(problem.z, vectors_count, width);
  const std::shared_ptr<Rows> rows(x.rows.get(), [](Rows*) {});
  const KernelCase kernel = gaussian_case(0.5);
  const QuadraticLoss losses[] = {{1.0, 0.0, 1e300},
                                  {0.5, 0.0, 1.0},
                                  {1.0, -1e300, 1e300},
                                  {1.0, -1e300, 1e300, 0.0, true},
                                  {1.0, -1e300, 1e300, 0.3, true},
                                  {0.5, -1.0, 1.0, 0.0, true}};
  const std::string name = std::string("passes, ") + (sizeof(Real) == 4 ? "float" : "double") + (listed ? ", sparse" : ", dense");
  for (const QuadraticLoss& loss : losses) {
    const Sums wanted = loss.targets ? expected<TargetLoss>(problem, kernel, loss) : expected<LabelLoss>(problem, kernel, loss);
    const Sums found = passed<Real>(problem, rows, *z.rows, kernel.kernel, loss, 1, 1 << 20);
    const double unit = (sizeof(Real) == 4 ? 1e-6 : 1e-14) * 8;  // some roundings of each term, of which many cancel
    compare(found.value, wanted.value, unit, name, ": losses");
    compare(found.moments, wanted.moments, unit, name, ": moments");
    compare(found.grams, wanted.grams, unit, name, ": matrices");
    compare(found.products, wanted.products, unit, name, ": products");
    compare(found.inputs, wanted.inputs, unit, name, ": squares of inputs");
    for (const int threads : {2, 4})
      for (const std::size_t keep : {std::size_t(0), std::size_t(1) << 20})
        check(passed<Real>(problem, rows, *z.rows, kernel.kernel, loss, threads, keep) == found, name, ": threads change the sums");
  }
}

}  // namespace

void passes() {
  for (const Index n : {1, 33, 1500})
    for (const bool listed : {false, true}) {
      one<float>(n, listed);
      one<double>(n, listed);
    }
}

}  // namespace tests
