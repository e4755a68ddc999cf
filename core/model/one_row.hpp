// Values of one row, or of a few: nothing is packed, vectors are read once where they lie, and all is summed in double.
// Rows and vectors of float are numbers of double, too: which of the two they are makes no difference here.
#pragma once

#include <algorithm>
#include <variant>
#include <vector>

#include "kernels/kernels.hpp"
#include "rows/rows.hpp"
#include "cpu/simd.hpp"

namespace slimsvm {

constexpr Index few_rows_limit = 4;

// Numbers on the stack as long as they are few: a call should not allocate.
class Doubles {
 public:
  explicit Doubles(std::size_t count) {
    if (count > few) many_.resize(count);
  }
  double* get() { return many_.empty() ? few_ : many_.data(); }

 private:
  static constexpr std::size_t few = 1024;
  double few_[few];
  std::vector<double> many_;
};

// The sum of the lanes, in halves.
template <int N>
SLIM_INLINE double across(Vec<double, N> v) {
  double part[N];
  store(part, v);
#pragma GCC unroll 4
  for (int half = N / 2; half > 0; half /= 2)
#pragma GCC unroll 4
    for (int l = 0; l < half; ++l) part[l] += part[l + half];
  return part[0];
}

template <int N, class T>
SLIM_INLINE Vec<double, N> load_double(const T* p) {
  return __builtin_convertvector(load<Vec<T, N>>(p), Vec<double, N>);
}

// values[j] = k(x, z_j), the vectors z_j being `apart` numbers apart. `values` has room for a vector register more.
template <class Kernel, class T>
struct RowValues {
  template <class Metric, int N>
  static SLIM_INLINE double rest(const double* x, const T* z, Index width) {
    double total = 0;
    if (width >= N) {
      total = across<N>(Metric::step(Vec<double, N>{}, load<Vec<double, N>>(x), load_double<N>(z)));
      x += N, z += N, width -= N;
    }
    if constexpr (N > 2) return total + rest<Metric, N / 2>(x, z, width);
    // A vector of one lane would go through memory.
    return width ? total + Metric::step(Vec<double, 2>{}, Vec<double, 2>{x[0]}, Vec<double, 2>{static_cast<double>(z[0])})[0] : total;
  }
  template <class Metric, int N>
  static SLIM_INLINE double sum(const double* x, const T* z, Index width) {
    using V = Vec<double, N>;
    V even{}, odd{};
    Index k = 0;
    for (; k + 2 * N <= width; k += 2 * N) {
      even = Metric::step(even, load<V>(x + k), load_double<N>(z + k));
      odd = Metric::step(odd, load<V>(x + k + N), load_double<N>(z + k + N));
    }
    return across<N>(even + odd) + rest<Metric, N>(x + k, z + k, width - k);
  }
  template <class Isa>
  static SLIM_INLINE void run(const Kernel* kernel, const double* x, const T* z, Index apart, Index count, Index width, double* values) {
    constexpr int N = lanes<double, Isa>;
    using V = Vec<double, N>;
    using Metric = std::conditional_t<of_differences<Kernel>, DirectOf<Kernel>, typename Kernel::Metric>;
    for (Index j = 0; j < count; ++j) values[j] = sum<Metric, N>(x, z + j * apart, width);
    store(values + count, V{});
    for (Index j = 0; j < count; j += N) {
      const V s = load<V>(values + j);
      if constexpr (of_differences<Kernel>)
        store(values + j, kernel->template direct<double, N>(s));
      else
        store(values + j, kernel->template finish<double, N>(s, V{}, V{}));
    }
  }
};

// out[o] = bias[o] + coef[o] . values
struct Combine {
  template <class Isa>
  static SLIM_INLINE void run(const double* coef, const double* bias, int outputs, const double* values, Index count, double* out) {
    constexpr int N = lanes<double, Isa>;
    for (int o = 0; o < outputs; ++o) out[o] = bias[o] + RowValues<Linear, double>::sum<Dot, N>(values, coef + o * count, count);
  }
};

// All outputs of one row over vectors that lie in memory, or over none; false if they do not.
inline bool one_row(const AnyKernel& kernel, const Rows& vectors, const double* x, const double* coef, const double* bias, int outputs,
                    double* values, double* out) {
  if (vectors.size == 0) {
    std::copy(bias, bias + outputs, out);
    return true;
  }
  const auto over = [&](auto type) {
    using T = decltype(type);
    const T* z = vectors.contiguous(0, type);
    if (!z) return false;
    const Index apart = vectors.size > 1 ? vectors.contiguous(1, type) - z : 0;
    std::visit(
        [&](const auto& k) { dispatch<RowValues<std::decay_t<decltype(k)>, T>>(&k, x, z, apart, vectors.size, vectors.width, values); },
        kernel);
    return true;
  };
  if (!over(double()) && !over(float())) return false;
  dispatch<Combine>(coef, bias, outputs, static_cast<const double*>(values), vectors.size, out);
  return true;
}

constexpr Index register_room = 8;  // doubles of the widest vector register

// The same for a few rows of any kind: packing the vectors would cost more than using them.
inline bool few_rows(const AnyKernel& kernel, const Rows& vectors, const Rows& x, const double* coef, const double* bias, int outputs, double* out) {
  if (x.size > few_rows_limit) return false;
  Doubles row(x.width), values(vectors.size + register_room);
  for (Index i = 0; i < x.size; ++i) {
    x.pack(&i, 1, 1, row.get());
    if (!one_row(kernel, vectors, row.get(), coef, bias, outputs, values.get(), out + i * outputs)) return false;
  }
  return true;
}

}  // namespace slimsvm
