// Vectors: shuffles, and exp against the library's.
#include "check.hpp"
#include "cpu/transpose.hpp"
#include "smo/pairs.hpp"

namespace tests {

using namespace slimsvm;

template <class Real>
struct Exponentials {
  template <class Isa>
  static SLIM_INLINE void run(const Real* x, Real* any, Real* falling) {
    constexpr int N = lanes<Real, Isa>;
    using V = Vec<Real, N>;
    for (int i = 0; i < 64; i += N) {
      store(any + i, vexp<Real, N>(load<V>(x + i)));
      store(falling + i, vexp_falling<Real, N>(load<V>(x + i)));
    }
  }
};

template <class Real>
void exponentials() {
  const double lowest = sizeof(Real) == 4 ? -87 : -708, highest = sizeof(Real) == 4 ? 88.5 : 709.5;
  const double unit = std::numeric_limits<Real>::epsilon();
  const std::string of_any = "exp", of_falling = "exp of what is not positive";
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    Real x[64], any[64], falling[64];
    for (Real& value : x) value = static_cast<Real>(lowest + random.uniform() * (highest - lowest));
    dispatch<Exponentials<Real>>(static_cast<const Real*>(x), static_cast<Real*>(any), static_cast<Real*>(falling));
    for (int i = 0; i < 64; ++i) {
      const double expected = std::exp(static_cast<double>(x[i]));
      check_near(any[i], expected, 3 * unit * expected, of_any);
      if (x[i] <= 0) check_near(falling[i], expected, 3 * unit * expected, of_falling);
    }
  }
  constexpr Real huge = std::numeric_limits<Real>::infinity();
  Real x[64] = {}, any[64], falling[64];
  x[0] = huge, x[1] = -huge, x[2] = std::numeric_limits<Real>::quiet_NaN(), x[3] = Real(1e4), x[4] = Real(-1e4), x[5] = Real(-0.0);
  dispatch<Exponentials<Real>>(static_cast<const Real*>(x), static_cast<Real*>(any), static_cast<Real*>(falling));
  check(any[0] == huge && any[3] == huge, "exp of what is too large is infinite");
  check(any[1] == 0 && any[4] == 0 && falling[1] == 0 && falling[4] == 0, "exp of what is too small is zero");
  check(any[2] != any[2], "exp of what is not a number is not a number");
  check(any[5] == 1 && falling[5] == 1, "exp(-0) is 1");
}

template <class T>
struct Lanes {
  template <class Isa>
  static SLIM_INLINE void run(const T* in, T* transposed, T* most, T* least) {
    constexpr int N = lanes<T, Isa>;
    using V = Vec<T, N>;
    V rows[N];
#pragma GCC unroll 16
    for (int r = 0; r < N; ++r) rows[r] = load<V>(in + r * N);
    *most = detail::lane_max<T, N>(rows[1]);
    *least = detail::lane_min<T, N>(rows[1]);
    transpose<T, N>(rows);
#pragma GCC unroll 16
    for (int r = 0; r < N; ++r) store(transposed + r * N, rows[r]);
  }
};

struct Width {
  template <class Isa>
  static SLIM_INLINE int run() {
    return Isa::bytes;
  }
};

template <class T>
void shuffles() {
  const int n = dispatch<Width>() / static_cast<int>(sizeof(T));
  Random random(2);
  T in[256], out[256], most = 0, least = 0;
  for (T& value : in) value = static_cast<T>(random.symmetric());
  dispatch<Lanes<T>>(static_cast<const T*>(in), static_cast<T*>(out), &most, &least);
  for (int r = 0; r < n; ++r)
    for (int c = 0; c < n; ++c) check(out[c * n + r] == in[r * n + c], "a transposed square");
  check(most == *std::max_element(in + n, in + 2 * n), "the largest lane");
  check(least == *std::min_element(in + n, in + 2 * n), "the smallest lane");
}

void vectors() {
  exponentials<float>();
  exponentials<double>();
  shuffles<float>();
  shuffles<double>();
}

}  // namespace tests
