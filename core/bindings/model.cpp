// Fitted models for Python: decision values of many rows, or of one.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "bindings/bindings.hpp"
#include "model/decision.hpp"
#include "model/row_model.hpp"

namespace slimsvm {

using namespace nb::literals;

namespace {

constexpr Index brief_work = 1 << 16;  // products that take less time than to let go of the GIL

nb::ndarray<nb::numpy, double> decide(const AnyKernel& kernel, const std::shared_ptr<Rows>& vectors, const std::shared_ptr<Rows>& x,
                                      const Matrix& coef, const Vector& bias, bool single, int threads) {
  const int outputs = checked_int(coef.shape(0), "binary problems");
  if (static_cast<Index>(coef.shape(1)) != vectors->size || bias.shape(0) != coef.shape(0) || x->width != vectors->width)
    throw nb::value_error("vectors, coefficients, bias and data do not fit together");
  std::vector<double> out(static_cast<std::size_t>(x->size) * outputs);
  {
    PythonMonitor monitor{nb::object()};
    std::optional<nb::gil_scoped_release> release;
    if (x->size * vectors->size * vectors->width > brief_work) release.emplace();
    if (!few_rows(kernel, *vectors, *x, coef.data(), bias.data(), outputs, out.data())) {
      ThreadPool pool(static_cast<int>(std::min<Index>(threads, std::max<Index>(1, x->size / 128))));
      const auto run = [&](auto tag) {
        decision<decltype(tag)>(kernel, *vectors, *x, coef.data(), bias.data(), outputs, out.data(), pool, monitor);
      };
      if (single && float_error(kernel, *vectors, *x, coef.data(), outputs) < 1e-3)
        run(float());
      else
        run(double());
    }
  }
  return to_numpy(std::move(out), {static_cast<std::size_t>(x->size), coef.shape(0)});
}

// --- one row at a time --------------------------------------------------------------------------------------------

// The values of a row that Python lends as a buffer of float or double; false if X is none: Python then looks at it.
bool row_values(const RowModel& model, nb::handle x, double* out) {
  Py_buffer buffer;
  if (PyObject_GetBuffer(x.ptr(), &buffer, PyBUF_STRIDES | PyBUF_FORMAT) != 0) {
    PyErr_Clear();
    return false;
  }
  const char* format = buffer.format ? buffer.format : "";
  const bool row = buffer.ndim == 1 && (*format == 'd' || *format == 'f') && format[1] == 0 && buffer.shape[0] == model.width();
  if (row) {
    const char* data = static_cast<const char*>(buffer.buf);
    std::optional<nb::gil_scoped_release> release;
    if (model.products() > brief_work) release.emplace();
    if (*format == 'd')
      model.values<double>(data, buffer.strides[0], out);
    else
      model.values<float>(data, buffer.strides[0], out);
  }
  PyBuffer_Release(&buffer);
  return row;
}

nb::object all_values(const RowModel& model, nb::handle x) {
  std::vector<double> out(model.outputs());
  if (!row_values(model, x, out.data())) return nb::none();
  return nb::cast(to_numpy(std::move(out), {static_cast<std::size_t>(model.outputs())}));
}

nb::object shown_values(const RowModel& model, nb::handle x) {
  SmallArray values(model.outputs());
  if (!row_values(model, x, values.get())) return nb::none();
  if (model.shown() == 1) return nb::float_(values.get()[0]);
  std::vector<double> out(model.shown());
  model.show(values.get(), out.data());
  return nb::cast(to_numpy(std::move(out), {static_cast<std::size_t>(model.shown())}));
}

nb::object winner(const RowModel& model, nb::handle x) {
  SmallArray values(model.outputs());
  return row_values(model, x, values.get()) ? nb::object(nb::int_(model.winner(values.get()))) : nb::none();
}

std::vector<double> numbers_of(const Vector& values, std::size_t expected) {
  if (values.shape(0) != expected) throw nb::value_error("expected one number for each input or output");
  return std::vector<double>(values.data(), values.data() + expected);
}

RowModel row_model(const AnyKernel& kernel, std::shared_ptr<Rows> vectors, const Matrix& coef, const Vector& bias) {
  if (static_cast<Index>(coef.shape(1)) != vectors->size || bias.shape(0) != coef.shape(0) || bias.shape(0) == 0)
    throw nb::value_error("vectors, coefficients and bias do not fit together");
  if (vectors->size && !vectors->contiguous(0, 0.0) && !vectors->contiguous(0, 0.0f)) throw nb::value_error("expected dense vectors in C order");
  std::vector<double> numbers(coef.data(), coef.data() + coef.shape(0) * coef.shape(1));
  return RowModel(kernel, std::move(vectors), std::move(numbers), numbers_of(bias, coef.shape(0)));
}

// Scores of the classes from the values of all pairs of them.
nb::ndarray<nb::numpy, double> pair_scores(const Matrix& values, int classes, bool by_value, bool zero_is_positive) {
  const std::size_t rows = values.shape(0), pairs = values.shape(1);
  if (classes < 1 || pairs != static_cast<std::size_t>(classes) * (classes - 1) / 2) throw nb::value_error("expected a value for each pair of classes");
  const Votes votes{true, by_value, zero_is_positive};
  std::vector<double> sums(classes), scores(rows * classes);
  for (std::size_t i = 0; i < rows; ++i) votes.score(values.data() + i * pairs, classes, sums.data(), scores.data() + i * classes);
  return to_numpy(std::move(scores), {rows, static_cast<std::size_t>(classes)});
}

}  // namespace

void bind_models(nb::module_& m) {
  m.def("decision", &decide, "kernel"_a, "vectors"_a, "x"_a, "coef"_a, "bias"_a, "single"_a = false, "threads"_a = 1);

  nb::class_<RowModel>(m, "RowModel", "A fitted model for one row at a time; None where it is given no row of floats of its width.")
      .def(nb::new_(&row_model), "kernel"_a, "vectors"_a, "coef"_a, "bias"_a)
      .def("scale", [](RowModel& r, const Vector& scales) { r.scale(numbers_of(scales, r.width())); }, "scales"_a)
      .def("standardise", [](RowModel& r, const Vector& mean, const Vector& spread) {
             r.standardise(numbers_of(mean, r.width()), numbers_of(spread, r.width()));
           }, "mean"_a, "spread"_a)
      .def("decide", [](RowModel& r, int classes, bool pairs, bool by_value, bool zero_is_positive) {
             r.decide(classes, {pairs, by_value, zero_is_positive});
           }, "classes"_a, "pairs"_a, "by_value"_a, "zero_is_positive"_a)
      .def("show_scores", [](RowModel& r, bool pairs, bool by_value, bool zero_is_positive) {
             r.show_scores({pairs, by_value, zero_is_positive});
           }, "pairs"_a, "by_value"_a, "zero_is_positive"_a)
      .def("values", &all_values, "row"_a)
      .def("shown", &shown_values, "row"_a)
      .def("winner", &winner, "row"_a);
  m.def("pair_scores", &pair_scores, "values"_a, "classes"_a, "by_value"_a, "zero_is_positive"_a);
}

}  // namespace slimsvm
