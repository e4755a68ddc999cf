// What the tests of the core share: claims that are counted, numbers that are the same on every machine, sets of rows.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "rows/dense_rows.hpp"
#include "rows/sparse_rows.hpp"

namespace tests {

struct Tally {
  long long checked = 0, failed = 0;
};
inline Tally tally;

// A claim; where it does not hold, what it was about. Words are put together only then: there are a million claims.
inline void check(bool holds, const std::string& name, const char* what = "") {
  ++tally.checked;
  if (holds) return;
  if (++tally.failed <= 20) std::printf("FAILED: %s%s\n", name.c_str(), what);
}

// Fails also where a value is not a number.
inline void check_near(double value, double expected, double allowed, const std::string& name, const char* what = "") {
  ++tally.checked;
  if (std::fabs(value - expected) <= allowed) return;
  if (++tally.failed <= 20) std::printf("FAILED: %s%s: %.17g instead of %.17g\n", name.c_str(), what, value, expected);
}

// The standard library's distributions differ from one library to the next.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  double uniform() {  // in [0, 1), with the digits of a float
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state_ >> 41) / static_cast<double>(1 << 23);
  }
  double symmetric() { return 2 * uniform() - 1; }

 private:
  std::uint64_t state_;
};

// Numbers of rows x columns, a share of them filled, all exact in float.
inline std::vector<double> numbers(slimsvm::Index rows, slimsvm::Index columns, double density, std::uint64_t seed) {
  Random random(seed);
  std::vector<double> values(static_cast<std::size_t>(rows * columns));
  for (double& value : values) {
    const double x = random.symmetric();
    value = random.uniform() < density ? x : 0.0;
  }
  return values;
}

// The same numbers as rows of either kind and type, with the memory they look at.
template <class T>
struct Table {
  std::vector<T> values;
  std::vector<std::int32_t> columns, starts;
  std::unique_ptr<slimsvm::Rows> rows;
};

template <class T>
Table<T> dense(const std::vector<double>& x, slimsvm::Index count, slimsvm::Index width, bool by_columns = false) {
  Table<T> table;
  table.values.resize(x.size());
  for (slimsvm::Index i = 0; i < count; ++i)
    for (slimsvm::Index k = 0; k < width; ++k) table.values[by_columns ? k * count + i : i * width + k] = static_cast<T>(x[i * width + k]);
  table.rows = std::make_unique<slimsvm::DenseRows<T>>(table.values.data(), count, width, by_columns ? 1 : width, by_columns ? count : 1,
                                                       std::vector<double>(), std::vector<double>());
  return table;
}

template <class T>
Table<T> sparse(const std::vector<double>& x, slimsvm::Index count, slimsvm::Index width) {
  Table<T> table;
  table.starts.push_back(0);
  for (slimsvm::Index i = 0; i < count; ++i) {
    for (slimsvm::Index k = 0; k < width; ++k)
      if (x[i * width + k] != 0) table.columns.push_back(static_cast<std::int32_t>(k)), table.values.push_back(static_cast<T>(x[i * width + k]));
    table.starts.push_back(static_cast<std::int32_t>(table.values.size()));
  }
  table.rows = std::make_unique<slimsvm::SparseRows<T, std::int32_t>>(table.values.data(), table.columns.data(), table.starts.data(), count, width,
                                                                      std::vector<double>());
  return table;
}

void vectors();
void kernels();
void decisions();
void threads();
void solver();
void passes();
void linear_algebra();
void quasi_newton();
void row_cache();

}  // namespace tests
