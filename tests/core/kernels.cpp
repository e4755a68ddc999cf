// Blocks of kernel values against their formulas, within the error that the blocks promise; decision values.
#include <numeric>

#include "check.hpp"
#include "model/decision.hpp"
#include "model/one_row.hpp"
#include "reference.hpp"

namespace tests {

using namespace slimsvm;

struct Shape {
  Index left, right, width;
};
// One row, odd numbers, whole tiles, more than one sum of sums.
constexpr Shape shapes[] = {{1, 1, 1}, {3, 5, 2}, {7, 33, 5}, {13, 31, 17}, {24, 64, 32}, {37, 70, 67}, {65, 97, 150}};

std::vector<Index> counted(Index n) {
  std::vector<Index> ids(static_cast<std::size_t>(n));
  std::iota(ids.begin(), ids.end(), Index(0));
  return ids;
}

// Every value of left rows against right rows, the latter from `first` on.
template <class Real>
void values_of(const KernelCase& given, const Shape& shape, const Rows& rows, const std::vector<double>& x, bool by_nonzeros, const std::string& name) {
  const auto blocks = given.kernel->blocks(Real(), shape.width, by_nonzeros);
  const std::vector<Index> ids = counted(rows.size);
  const Rounding rounding = blocks->rounding(rows, ids.data(), rows.size);
  const auto near = [&](double found, Index i, Index j, const char* what) {
    const double expected = given.value(x.data() + i * shape.width, x.data() + j * shape.width, shape.width);
    const double of_reference = 1e-13 * (1 + std::fabs(expected));
    check_near(found, expected, rounding.absolute + rounding.relative * std::fabs(expected) + of_reference, name, what);
  };
  PackedLeft<Real> left;
  PackedStrip<Real> strip;
  BlockScratch<Real> scratch;
  const int count = static_cast<int>(shape.left), columns = static_cast<int>(shape.right);
  blocks->prepare(rows, ids.data(), count, left);
  blocks->pack(rows, ids.data() + count, columns, strip);
  const int stride = strip_padding(columns);
  std::vector<Real> out(static_cast<std::size_t>(count) * stride);
  std::vector<Real*> places;
  for (int i = 0; i < count; ++i) places.push_back(out.data() + i * stride);
  for (int first = 0; first < columns; first += 32) {
    const int some = std::min(32 * (1 + first / 32), columns - first);
    blocks->evaluate(left, count, strip, shape.width, first, some, places.data(), scratch);
    for (int i = 0; i < count; ++i)
      for (int j = 0; j < some; ++j) near(places[i][j], i, shape.left + first + j, ", block");
  }
  std::vector<double> diagonal(static_cast<std::size_t>(rows.size));
  blocks->diagonal(rows, ids.data(), rows.size, diagonal.data());
  for (Index i = 0; i < rows.size; ++i) near(diagonal[i], i, i, ", diagonal");
  std::vector<double> row(static_cast<std::size_t>(rows.width)), one(static_cast<std::size_t>(rows.size + register_room));
  rows.pack(ids.data(), 1, 1, row.data());
  if (one_row(given.kernel, rows, row.data(), nullptr, nullptr, 0, one.data(), nullptr))
    for (Index j = 0; j < rows.size; ++j) near(one[j], 0, j, ", one row");
}

template <class Real>
void kernel_values(const char* type) {
  for (const KernelCase& given : every_kernel())
    for (const Shape& shape : shapes) {
      const std::string name = given.name + " " + type + " " + std::to_string(shape.left) + " x " + std::to_string(shape.right) + " x " +
                               std::to_string(shape.width);
      const Index n = shape.left + shape.right;
      const auto filled = numbers(n, shape.width, 1.0, 3), thin = numbers(n, shape.width, 0.2, 4);
      values_of<Real>(given, shape, *dense<Real>(filled, n, shape.width).rows, filled, false, name + " dense");
      values_of<Real>(given, shape, *dense<double>(filled, n, shape.width, true).rows, filled, false, name + " by columns");
      values_of<Real>(given, shape, *sparse<Real>(thin, n, shape.width).rows, thin, true, name + " sparse");
      values_of<Real>(given, shape, *sparse<Real>(thin, n, shape.width).rows, thin, false, name + " sparse, packed");
      values_of<Real>(given, shape, *dense<float>(thin, n, shape.width).rows, thin, true, name + " dense by nonzeros");
    }
  // So wide that a sparse panel keeps only the columns in use.
  const Shape wide{9, 20, 5000};
  const auto thin = numbers(29, wide.width, 0.01, 5);
  for (const KernelCase& given : every_kernel())
    values_of<Real>(given, wide, *sparse<Real>(thin, 29, wide.width).rows, thin, true, given.name + " " + type + " wide");
}

// Slopes of kernels are their derivatives, but for a constant factor.
template <class Real>
void slopes(const char* type) {
  for (const KernelCase& given : every_kernel()) {
    const Slope kind = given.kernel->slope_kind();
    if (kind == Slope::none) continue;
    const bool of_dot = given.kernel->dot_product_degree() > 0;
    const auto blocks = given.kernel->slope_blocks(Real(), 1, false);
    for (const double s : {0.04, 0.25, 1.0, 2.25}) {
      // Numbers x and z with x z = s, or (x - z)^2 = s.
      const double z = of_dot ? 1 : 0, step = 1e-4 * s;
      const auto value = [&](double at) {
        const double x = of_dot ? at : std::sqrt(at);
        return given.value(&x, &z, 1);
      };
      const double derivative = (value(s + step) - value(s - step)) / (2 * step);
      const auto table = dense<double>({of_dot ? s : std::sqrt(s), z}, 2, 1);
      const Index ids[] = {0, 1};
      PackedLeft<Real> left;
      PackedStrip<Real> strip;
      BlockScratch<Real> scratch;
      blocks->prepare(*table.rows, ids, 1, left);
      blocks->pack(*table.rows, ids + 1, 1, strip);
      std::vector<Real> out(static_cast<std::size_t>(strip_padding(1)));
      Real* const place = out.data();
      blocks->evaluate(left, 1, strip, 1, 0, 1, &place, scratch);
      const double slope = kind == Slope::one_minus_squared ? 1 - static_cast<double>(out[0]) * out[0] : out[0];
      check_near(given.kernel->slope_factor() * slope, derivative, 1e-4 * std::fabs(derivative) + 1e-9, given.name + " " + type, ", slope");
    }
  }
}

void kernels() {
  kernel_values<float>("float");
  kernel_values<double>("double");
  slopes<float>("float");
  slopes<double>("double");
}

// Sums over kernel values; few rows take another way.
void decisions() {
  const Index m = 40, width = 9;
  const int outputs = 3;
  Random random(6);
  std::vector<double> coef(outputs * m), bias{0.5, -1.0, 0.0};
  for (double& c : coef) c = random.uniform() < 0.3 ? 0.0 : random.symmetric();
  Monitor monitor;
  for (const KernelCase& given : every_kernel())
    for (const Index n : {Index(1), Index(4), Index(300)}) {
      const auto z = numbers(m, width, 1.0, 7), x = numbers(n, width, 1.0, 8);
      const auto vectors = dense<double>(z, m, width), rows = dense<double>(x, n, width);
      std::vector<std::vector<double>> results;
      for (const int workers : {1, 3}) {
        ThreadPool pool(workers);
        std::vector<double> out(static_cast<std::size_t>(n * outputs));
        decision<double>(given.kernel, *vectors.rows, *rows.rows, coef.data(), bias.data(), outputs, out.data(), pool, monitor);
        results.push_back(out);
      }
      check(results[0] == results[1], given.name + ": threads change no decision value");
      for (Index i = 0; i < n; ++i)
        for (int o = 0; o < outputs; ++o) {
          double sum = bias[o], sizes = 1;
          for (Index j = 0; j < m; ++j) {
            const double k = given.value(x.data() + i * width, z.data() + j * width, width);
            sum += coef[o * m + j] * k, sizes += std::fabs(coef[o * m + j] * k);
          }
          check_near(results[0][i * outputs + o], sum, 1e-12 * sizes, given.name, ", decision value");
        }
    }
}

}  // namespace tests
