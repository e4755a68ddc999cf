// What all bindings share: arrays, and signals heard while the core works.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "smo/monitor.hpp"

namespace slimsvm {

namespace nb = nanobind;

using Array = nb::ndarray<nb::ro, nb::device::cpu>;
using Flat = nb::ndarray<nb::ro, nb::device::cpu, nb::ndim<1>, nb::c_contig>;
using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Ids = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Output = nb::ndarray<nb::device::cpu, nb::ndim<2>, nb::c_contig>;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class T>
nb::ndarray<nb::numpy, T> to_numpy(std::vector<T>&& values, std::vector<std::size_t> shape) {
  auto* owned = new std::vector<T>(std::move(values));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::ndarray<nb::numpy, T>(owned->data(), shape.size(), shape.data(), owner);
}

// The numbers of an array; they must lie where the machine expects such numbers.
template <class T, class A>
auto* numbers(const A& array) {
  auto* data = array.data();
  if (reinterpret_cast<std::uintptr_t>(data) % alignof(T)) throw nb::value_error("expected an aligned array: pass a copy of it");
  using Pointer = std::conditional_t<std::is_const_v<std::remove_pointer_t<decltype(data)>>, const T*, T*>;
  return static_cast<Pointer>(data);
}

[[noreturn]] inline void too_many(std::size_t given, std::size_t most, const char* what, const char* way_out) {
  throw nb::value_error((std::to_string(given) + " " + what + ": at most " + std::to_string(most) + " can be used; " + way_out).c_str());
}

// A count that the core keeps in an int.
inline int checked_int(std::size_t count, const char* what) {
  constexpr std::size_t most = std::numeric_limits<int>::max();
  if (count > most) too_many(count, most, what, "use fewer");
  return static_cast<int>(count);
}

// Columns of nonzeros are kept in 32 bits, and one number more is needed.
inline void check_width(std::size_t width) {
  constexpr std::size_t most = std::numeric_limits<std::int32_t>::max() - 1;
  if (width > most) too_many(width, most, "columns", "leave out or hash columns");
}

class PythonMonitor final : public SolverMonitor {
 public:
  explicit PythonMonitor(nb::object callback) : callback_(std::move(callback)) {}
  bool wants_reports() const override { return callback_.is_valid() && !callback_.is_none(); }
  void report(const Report& r) override {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < std::chrono::milliseconds(100)) return;
    last_ = now;
    nb::gil_scoped_acquire gil;
    callback_(r.steps, r.certificate.dual, r.certificate.relative(), r.vectors);
  }

 protected:
  void check() override {
    nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }

 private:
  nb::object callback_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// Each file of bindings adds what it has.
void bind_linear(nb::module_& m);
void bind_kernel_matrix(nb::module_& m);
void bind_models(nb::module_& m);
void bind_passes(nb::module_& m);

}  // namespace slimsvm
