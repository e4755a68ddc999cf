// Fixed-width vectors and run-time choice of the instruction set.
//
// A hot function is written once, as `struct F { template <class Isa> static void run(...) }`, over the
// vector types below; `dispatch<F>(...)` runs the copy compiled for the best instruction set of this
// machine. Everything inside is inlined, so each copy uses the registers and widths of its own set.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <utility>

#if !defined(__GNUC__) && !defined(__clang__)
#error "slimsvm needs GCC or Clang (clang-cl on Windows): it uses their vector types"
#endif

#if defined(__x86_64__)
#define SLIM_X86 1
#include <cpuid.h>
// Features that the copies are compiled with; `best_level` asks for each. GCC uses half of the widest registers unless told
// otherwise, in an attribute that makes Clang ignore the whole target: Clang uses them anyway.
#define SLIM_FEATURES_V3 "avx2,fma,bmi,bmi2,f16c,lzcnt,movbe"
#define SLIM_FEATURES_V4 SLIM_FEATURES_V3 ",avx512f,avx512bw,avx512cd,avx512dq,avx512vl"
#if defined(__clang__)
// Without the last attribute, vectors that find no register are kept across cache lines.
#define SLIM_TARGET_V3 __attribute__((target(SLIM_FEATURES_V3), flatten, force_align_arg_pointer))
#define SLIM_TARGET_V4 __attribute__((target(SLIM_FEATURES_V4), flatten, force_align_arg_pointer))
#else
#define SLIM_TARGET_V3 __attribute__((target(SLIM_FEATURES_V3), flatten))
#define SLIM_TARGET_V4 __attribute__((target(SLIM_FEATURES_V4 ",prefer-vector-width=512"), flatten))
#endif
#endif
#define SLIM_INLINE inline __attribute__((always_inline))
#define SLIM_INLINE_LAMBDA __attribute__((always_inline))  // functions for other sets pass vectors differently
#define SLIM_FLATTEN __attribute__((flatten))

namespace slimsvm {

// Bytes of a vector register, and the shape of the matrix-product tile that its register file holds:
// `tile_rows` broadcast values against `tile_vectors` vectors.
struct Baseline {
#if defined(__aarch64__)
  static constexpr int bytes = 16, tile_rows = 12, tile_vectors = 2;  // 32 registers
#else
  static constexpr int bytes = 16, tile_rows = 6, tile_vectors = 2;
#endif
};
struct Avx2 {
  static constexpr int bytes = 32, tile_rows = 6, tile_vectors = 2;
};
struct Avx512 {
  static constexpr int bytes = 64, tile_rows = 12, tile_vectors = 2;
};

// Vec<T, N>: N lanes of T. Memory is read and written by `load` and `store` only, which need no alignment.
template <class T, int N>
struct VecType {
  typedef T type __attribute__((vector_size(N * sizeof(T))));
};
template <class T, int N>
using Vec = typename VecType<T, N>::type;
template <class T, class Isa>
constexpr int lanes = Isa::bytes / static_cast<int>(sizeof(T));

// Copies of known size: the compilers make them single unaligned moves.
template <class V, class T>
SLIM_INLINE V load(const T* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof(V));
  return v;
}
template <class V, class T>
SLIM_INLINE void store(T* p, V v) {
  __builtin_memcpy(p, &v, sizeof(V));
}
template <class V, class T>
SLIM_INLINE V splat(T x) {
#if defined(__clang__)
  return x - V{};  // x whatever its sign: nothing is left to compute
#else
  return V{} + x;
#endif
}
template <class V>
SLIM_INLINE V vmax(V a, V b) {
  return a > b ? a : b;
}
template <class V>
SLIM_INLINE V vmin(V a, V b) {
  return a < b ? a : b;
}
template <class V>
SLIM_INLINE V vabs(V a) {
  return a < V{} ? -a : a;
}

template <class T>
struct IntOf;
template <>
struct IntOf<float> {
  using type = std::int32_t;
};
template <>
struct IntOf<double> {
  using type = std::int64_t;
};
template <>
struct IntOf<std::int32_t> {
  using type = std::int32_t;
};
template <>
struct IntOf<std::int64_t> {
  using type = std::int64_t;
};

// exp without branches or calls, so that it vectorises: exp(x) = 2^n exp(r), |r| <= ln2/2, exp(r) by its
// Taylor sum, whose remainder is below half an ulp. Relative error about 1 ulp.
template <class T>
struct ExpTable;
template <>
struct ExpTable<float> {
  static constexpr float magic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer in the low bits
  static constexpr float ln2_hi = 0.693359375f, ln2_lo = -2.12194440e-4f;
  static constexpr float lowest = -87.33654f, highest = 88.72283f;
  static constexpr int terms = 7, shift = 23, bias = 127;
};
template <>
struct ExpTable<double> {
  static constexpr double magic = 6755399441055744.0;  // 1.5 * 2^52
  static constexpr double ln2_hi = 6.93147180369123816490e-01, ln2_lo = 1.90821492927058770002e-10;
  static constexpr double lowest = -708.39641853226408, highest = 709.78271289338397;
  static constexpr int terms = 13, shift = 52, bias = 1023;
};

// exp(r) and the integer n (as bits) of a clamped argument.
template <class T, int N>
struct ExpParts {
  using V = Vec<T, N>;
  using I = Vec<typename IntOf<T>::type, N>;
  V sum;
  I power;
  SLIM_INLINE explicit ExpParts(V x) {
    using E = ExpTable<T>;
    constexpr T inverse_factorial[14] = {
        T(1.0),         T(1.0),          T(1.0 / 2),       T(1.0 / 6),        T(1.0 / 24),        T(1.0 / 120),        T(1.0 / 720),
        T(1.0 / 5040), T(1.0 / 40320), T(1.0 / 362880), T(1.0 / 3628800), T(1.0 / 39916800), T(1.0 / 479001600), T(1.0 / 6227020800.0)};
    const V shifted = x * T(1.4426950408889634) + E::magic;
    const V n = shifted - E::magic;
    const V r = (x - n * E::ln2_hi) - n * E::ln2_lo;
    sum = splat<V>(inverse_factorial[E::terms]);
#pragma GCC unroll 16
    for (int k = E::terms - 1; k >= 0; --k) sum = sum * r + inverse_factorial[k];
    power = reinterpret_cast<I>(shifted) - reinterpret_cast<I>(splat<V>(E::magic));
  }
  static SLIM_INLINE V two_to(I n) { return reinterpret_cast<V>((n + ExpTable<T>::bias) << ExpTable<T>::shift); }
};

// For x <= 0, as in kernels that fall with distance: 0 below the normal range.
template <class T, int N>
SLIM_INLINE Vec<T, N> vexp_falling(Vec<T, N> x) {
  using V = Vec<T, N>;
  using E = ExpTable<T>;
  const ExpParts<T, N> parts(vmax(x, splat<V>(E::lowest)));
  return x < splat<V>(E::lowest) ? V{} : parts.sum * parts.two_to(parts.power);
}

// For any x: 0 below the normal range, +inf above it, NaN as it is.
template <class T, int N>
SLIM_INLINE Vec<T, N> vexp(Vec<T, N> x) {
  using V = Vec<T, N>;
  using E = ExpTable<T>;
  const ExpParts<T, N> parts(vmin(vmax(x, splat<V>(E::lowest)), splat<V>(E::highest)));
  const auto half = parts.power >> 1;  // in two factors: the power may be one past the largest exponent
  const V value = parts.sum * parts.two_to(half) * parts.two_to(parts.power - half);
  const V in_range = x < splat<V>(E::lowest) ? V{} : value;
  const V result = x > splat<V>(E::highest) ? splat<V>(std::numeric_limits<T>::infinity()) : in_range;
  return x == x ? result : x;
}

// Lane l of the result: lane From::lane(l) of a, or of b, counted from N on.
template <class T, int N, class From, int... L>
SLIM_INLINE Vec<T, N> shuffle(Vec<T, N> a, Vec<T, N> b, std::integer_sequence<int, L...>) {
#if defined(__clang__) || __GNUC__ >= 12
  return __builtin_shufflevector(a, b, From::lane(L)...);
#else
  return __builtin_shuffle(a, b, Vec<typename IntOf<T>::type, N>{From::lane(L)...});
#endif
}

template <int N, int Step, bool High>
struct Exchanged {
  static constexpr int lane(int l) { return l & Step ? N + (High ? l : l ^ Step) : High ? l ^ Step : l; }
};
template <int Step>
struct Swapped {
  static constexpr int lane(int l) { return l ^ Step; }
};

// Lane l of the result: a[l], or b[l ^ Step] where bit Step of l is set (High: a[l ^ Step], or b[l]).
template <class T, int N, int Step, bool High>
SLIM_INLINE Vec<T, N> exchange(Vec<T, N> a, Vec<T, N> b) {
  return shuffle<T, N, Exchanged<N, Step, High>>(a, b, std::make_integer_sequence<int, N>());
}

// Lane l of v swapped with lane l ^ Step: the rungs of a reduction across lanes.
template <class T, int N, int Step>
SLIM_INLINE Vec<T, N> swapped(Vec<T, N> v) {
  return shuffle<T, N, Swapped<Step>>(v, v, std::make_integer_sequence<int, N>());
}

enum class Level { baseline, avx2, avx512 };

#ifdef SLIM_X86
// The compilers' own checks know few of the features, and Clang's needs a library that Windows' linker is not told about.
inline Level best_level() {
  struct Registers {
    unsigned a = 0, b = 0, c = 0, d = 0;
    explicit Registers(unsigned leaf) { __get_cpuid_count(leaf, 0, &a, &b, &c, &d); }
  };
  const auto all = [](unsigned found, std::initializer_list<int> bits) {
    for (const int bit : bits)
      if (!(found >> bit & 1)) return false;
    return true;
  };
  const Registers basic(1), more(7), extended(0x80000001);
  // sse3, ssse3, fma, sse4.1, sse4.2, movbe, popcnt, osxsave, avx, f16c; bmi, avx2, bmi2; lzcnt
  if (!all(basic.c, {0, 9, 12, 19, 20, 22, 23, 27, 28, 29}) || !all(more.b, {3, 5, 8}) || !all(extended.c, {5})) return Level::baseline;
  unsigned kept, high;  // registers that the system saves for each thread; the instruction is there with osxsave
  __asm__("xgetbv" : "=a"(kept), "=d"(high) : "c"(0));
  if (!all(kept, {1, 2})) return Level::baseline;
  // avx512f, avx512dq, avx512cd, avx512bw, avx512vl
  if (!all(more.b, {16, 17, 28, 30, 31})) return Level::avx2;
#if !defined(__APPLE__)  // there they are saved from their first use on
  if (!all(kept, {5, 6, 7})) return Level::avx2;
#endif
  return Level::avx512;
}
#else
inline Level best_level() { return Level::baseline; }
#endif

// The best set this machine has; SLIMSVM_ISA=baseline|avx2|avx512 lowers it (for tests and timings).
inline Level level() {
  static const Level chosen = [] {
    const Level best = best_level();
    const char* wish = std::getenv("SLIMSVM_ISA");
    if (wish && !std::strcmp(wish, "baseline")) return Level::baseline;
    if (wish && !std::strcmp(wish, "avx2")) return std::min(best, Level::avx2);
    return best;
  }();
  return chosen;
}

#ifdef SLIM_X86
template <class F, class... A>
SLIM_TARGET_V4 auto run_avx512(A... a) {
  return F::template run<Avx512>(a...);
}
template <class F, class... A>
SLIM_TARGET_V3 auto run_avx2(A... a) {
  return F::template run<Avx2>(a...);
}
#endif
template <class F, class... A>
SLIM_FLATTEN auto run_baseline(A... a) {
  return F::template run<Baseline>(a...);
}

template <class F, class... A>
inline auto dispatch(A... a) {
#ifdef SLIM_X86
  if (level() == Level::avx512) return run_avx512<F>(a...);
  if (level() == Level::avx2) return run_avx2<F>(a...);
#endif
  return run_baseline<F>(a...);
}

// Width of the matrix-product tile on this machine, for packing outside the dispatched code.
template <class Real>
inline void tile_shape(int& rows, int& columns) {
  const auto set = [&](auto isa) {
    using Isa = decltype(isa);
    rows = Isa::tile_rows;
    columns = Isa::tile_vectors * lanes<Real, Isa>;
  };
  if (level() == Level::avx512) return set(Avx512{});
  if (level() == Level::avx2) return set(Avx2{});
  set(Baseline{});
}

}  // namespace slimsvm
