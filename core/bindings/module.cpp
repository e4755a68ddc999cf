// Python's view of the core: arrays in, arrays out, the GIL released while it works, signals heard.
//
// Here are rows, kernels and keys; the other files of bindings add the rest.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>

#include <optional>

#include "bindings/bindings.hpp"
#include "kernels/kernels.hpp"
#include "kernels/values.hpp"
#include "model/one_row.hpp"
#include "rows/dense_rows.hpp"
#include "rows/keys.hpp"
#include "rows/sparse_rows.hpp"

using namespace slimsvm;
using namespace nb::literals;

namespace {

// Rows together with the Python arrays they look at.
struct HeldRows {
  std::shared_ptr<Rows> rows;
  std::vector<Array> arrays;
};

std::shared_ptr<Rows> hold(std::shared_ptr<Rows> rows, std::vector<Array> arrays) {
  auto held = std::make_shared<HeldRows>(HeldRows{std::move(rows), std::move(arrays)});
  Rows* raw = held->rows.get();
  // The last owner may let go on a thread without the GIL.
  return std::shared_ptr<Rows>(raw, [held](Rows*) mutable {
    nb::gil_scoped_acquire gil;
    held.reset();
  });
}

template <class T>
std::shared_ptr<Rows> dense_of(const Array& x, std::vector<double> shift, std::vector<double> scale) {
  return std::make_shared<DenseRows<T>>(numbers<T>(x), static_cast<Index>(x.shape(0)),
                                        static_cast<Index>(x.shape(1)), x.stride(0), x.stride(1), std::move(shift),
                                        std::move(scale));
}

// One value for each column, or none.
std::vector<double> by_column(const std::optional<Vector>& values, std::size_t columns) {
  if (!values) return {};
  if (values->shape(0) != columns) throw nb::value_error("shift and scale must have one value per column");
  return std::vector<double>(values->data(), values->data() + columns);
}

std::shared_ptr<Rows> dense_rows(const Array& x, std::optional<Vector> shift, std::optional<Vector> scale) {
  if (x.ndim() != 2) throw nb::value_error("expected a 2-D array");
  check_width(x.shape(1));
  const auto offset = by_column(shift, x.shape(1)), stretch = by_column(scale, x.shape(1));
  if (x.dtype() == nb::dtype<float>()) return hold(dense_of<float>(x, offset, stretch), {x});
  if (x.dtype() == nb::dtype<double>()) return hold(dense_of<double>(x, offset, stretch), {x});
  throw nb::type_error("expected float32 or float64");
}

template <class T, class I>
std::shared_ptr<Rows> sparse_of(const Flat& values, const Flat& columns, const Flat& starts, Index width, std::vector<double> scale) {
  const Index rows = static_cast<Index>(starts.shape(0)) - 1;
  const T* v = numbers<T>(values);
  const I *c = numbers<I>(columns), *s = numbers<I>(starts);
  if (rows < 0 || s[0] != 0 || static_cast<std::size_t>(s[rows]) > values.shape(0) || values.shape(0) != columns.shape(0))
    throw nb::value_error("the arrays of the sparse matrix do not fit together");
  for (Index i = 0; i < rows; ++i)
    if (s[i] > s[i + 1]) throw nb::value_error("the row starts of the sparse matrix decrease");
  for (I p = 0; p < s[rows]; ++p)
    if (c[p] < 0 || static_cast<Index>(c[p]) >= width) throw nb::value_error("a column index of the sparse matrix is out of range");
  return hold(std::make_shared<SparseRows<T, I>>(v, c, s, rows, width, std::move(scale)), {Array(values), Array(columns), Array(starts)});
}

std::shared_ptr<Rows> sparse_rows(const Flat& values, const Flat& columns, const Flat& starts, Index width,
                                  std::optional<Vector> scale) {
  if (width < 0) throw nb::value_error("the width of a sparse matrix must not be negative");
  check_width(static_cast<std::size_t>(width));
  if (columns.dtype() != starts.dtype()) throw nb::type_error("indices and indptr must have the same type");
  const auto stretch = by_column(scale, static_cast<std::size_t>(width));
  const bool wide = columns.dtype() == nb::dtype<std::int64_t>();
  if (!wide && columns.dtype() != nb::dtype<std::int32_t>()) throw nb::type_error("expected 32- or 64-bit indices");
  if (values.dtype() == nb::dtype<float>())
    return wide ? sparse_of<float, std::int64_t>(values, columns, starts, width, stretch) : sparse_of<float, std::int32_t>(values, columns, starts, width, stretch);
  if (values.dtype() == nb::dtype<double>())
    return wide ? sparse_of<double, std::int64_t>(values, columns, starts, width, stretch)
                : sparse_of<double, std::int32_t>(values, columns, starts, width, stretch);
  throw nb::type_error("expected float32 or float64");
}

void kernel_matrix(const AnyKernel& kernel, const std::shared_ptr<Rows>& x, const std::shared_ptr<Rows>& z, const Output& out, int threads) {
  if (x->width != z->width) throw nb::value_error("the rows differ in width");
  if (static_cast<Index>(out.shape(0)) != x->size || static_cast<Index>(out.shape(1)) != z->size)
    throw nb::value_error("out must have one row for each row of x and one column for each row of z");
  const bool single = out.dtype() == nb::dtype<float>();
  if (!single && out.dtype() != nb::dtype<double>()) throw nb::type_error("expected out of type float32 or float64");
  double* in_double = single ? nullptr : numbers<double>(out);
  float* in_float = single ? numbers<float>(out) : nullptr;
  PythonMonitor monitor{nb::object()};
  nb::gil_scoped_release release;
  if (!single)
    kernel_into<double>(kernel, *x, *z, in_double, threads, monitor);
  else if (kernel->blurred_in_float(*z))
    kernel_into<double>(kernel, *x, *z, in_float, threads, monitor);
  else
    kernel_into<float>(kernel, *x, *z, in_float, threads, monitor);
}

using Keys = nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

nb::ndarray<nb::numpy, std::uint64_t> keys_of(const std::shared_ptr<Rows>& x, const Keys& constants, int threads) {
  if (static_cast<Index>(constants.shape(0)) != x->width) throw nb::value_error("a constant for each column is needed");
  std::vector<std::uint64_t> keys(static_cast<std::size_t>(x->size));
  {
    PythonMonitor monitor{nb::object()};
    nb::gil_scoped_release release;
    ThreadPool pool(threads);
    row_keys(*x, constants.data(), keys.data(), pool, monitor);
  }
  const std::size_t count = keys.size();
  return to_numpy(std::move(keys), {count});
}

nb::ndarray<nb::numpy, Index> key_part(const Keys& keys, int bits, std::uint64_t part) {
  if (bits < 0 || bits > 63) throw nb::value_error("bits must be between 0 and 63");
  std::vector<Index> rows;
  {
    nb::gil_scoped_release release;
    rows = rows_of_part(keys.data(), keys.shape(0), bits, part);
  }
  const std::size_t count = rows.size();
  return to_numpy(std::move(rows), {count});
}

}  // namespace

NB_MODULE(_core, m) {
  m.doc() = "Compiled core of slimsvm: kernel rows, block SMO, expansions.";
  m.attr("instruction_set") = level() == Level::avx512 ? "avx512" : level() == Level::avx2 ? "avx2" : "baseline";

  m.attr("few_rows") = few_rows_limit;

  nb::class_<Rows>(m, "Rows", "Rows of data, dense or sparse, as the core sees them.")
      .def_ro("size", &Rows::size)
      .def_ro("width", &Rows::width);
  m.def("dense_rows", &dense_rows, "x"_a, "shift"_a = nb::none(), "scale"_a = nb::none());
  m.def("sparse_rows", &sparse_rows, "data"_a, "indices"_a, "indptr"_a, "width"_a, "scale"_a = nb::none());

  nb::class_<AnyKernel>(m, "Kernel", "A kernel that the core evaluates itself.");
  m.def("linear", &linear);
  m.def("gaussian", &gaussian, "gamma"_a);
  m.def("laplacian", &laplacian, "gamma"_a);
  m.def("polynomial", &polynomial, "gamma"_a, "coef0"_a, "degree"_a);
  m.def("sigmoid", &sigmoid, "gamma"_a, "coef0"_a);
  m.def("kernel_matrix", &kernel_matrix, "kernel"_a, "x"_a, "z"_a, "out"_a, "threads"_a = 1);
  m.def("row_keys", &keys_of, "x"_a, "constants"_a, "threads"_a = 1);
  m.def("key_part", &key_part, "keys"_a, "bits"_a, "part"_a);
  bind_linear(m);
  bind_kernel_matrix(m);
  bind_models(m);
  bind_passes(m);
}
