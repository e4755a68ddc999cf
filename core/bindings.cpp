// Python's view of the core: arrays in, arrays out, the GIL released while it works, signals heard.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>

#include "bindings.hpp"
#include "descent.hpp"
#include "expansion.hpp"
#include "keys.hpp"
#include "passes.hpp"
#include "row_model.hpp"
#include "smooth.hpp"
#include "whitening.hpp"

using namespace slimsvm;
using namespace nb::literals;

namespace {

// Rows together with the Python arrays they look at.
struct Held {
  std::shared_ptr<Rows> rows;
  std::vector<Array> arrays;
};

std::shared_ptr<Rows> hold(std::shared_ptr<Rows> rows, std::vector<Array> arrays) {
  auto held = std::make_shared<Held>(Held{std::move(rows), std::move(arrays)});
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

// A user's function (positions, first column, column count) -> rows, called on the fitting thread.
template <class Real>
class FunctionRows final : public RowSource<Real> {
 public:
  FunctionRows(nb::object rows, std::vector<double> diagonal) : rows_(std::move(rows)), diagonal_(std::move(diagonal)) {}
  ~FunctionRows() override {
    nb::gil_scoped_acquire gil;
    rows_.reset();
  }
  bool concurrent() const override { return false; }
  void prepare(const Index* positions, int count) override { positions_.assign(positions, positions + count); }
  void strip(int rows, Index first, int count, Real* const* out, int) override {
    nb::gil_scoped_acquire gil;
    nb::list ids;
    for (int i = 0; i < rows; ++i) ids.append(positions_[i]);
    const auto block = nb::cast<Matrix>(rows_(ids, first, count));
    if (block.shape(0) != static_cast<std::size_t>(rows) || block.shape(1) != static_cast<std::size_t>(count))
      throw nb::value_error("the kernel function returned a block of a wrong shape");
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < count; ++j) out[i][j] = static_cast<Real>(block(i, j));
  }
  void diagonal(double* out) const override { std::copy(diagonal_.begin(), diagonal_.end(), out); }

 private:
  nb::object rows_;
  std::vector<double> diagonal_;
  std::vector<Index> positions_;
};

// A machine for the life of one fit: its threads, its cache, its rows.
class BoundMachine final : public Machine {
 public:
  // Rows of the given precision; of all positions, or of those in the list.
  template <class Real>
  using Maker = std::function<std::unique_ptr<RowSource<Real>>(int threads, const std::vector<Index>* some)>;

  BoundMachine(Maker<float> single, Maker<double> full, std::vector<Segment> segments, std::size_t cache_bytes, int threads)
      : make_single_(std::move(single)),
        make_full_(std::move(full)),
        segments_(std::move(segments)),
        cache_bytes_(cache_bytes),
        threads_(threads),
        pool_(threads) {}

  Gram<float>& single() override { return get(single_, make_single_, cache_bytes_ / 4); }
  // Mostly for certificates, which use each strip once: none are kept.
  Gram<double>& full() override { return get(full_, make_full_, 0); }
  void release_single() override { single_.reset(); }
  std::unique_ptr<Gram<float>> subset(const std::vector<Index>& positions) override {
    auto source = make_single_(threads_, &positions);
    if (!source) return nullptr;
    std::vector<Segment> one{{0, static_cast<Index>(positions.size())}};
    return std::make_unique<Gram<float>>(std::move(source), std::move(one), cache_bytes_, cache_bytes_ / 4, pool_);
  }

 private:
  template <class Real>
  Gram<Real>& get(std::unique_ptr<Gram<Real>>& gram, const Maker<Real>& make, std::size_t strip_bytes) {
    if (!gram) gram = std::make_unique<Gram<Real>>(make(threads_, nullptr), segments_, cache_bytes_, strip_bytes, pool_);
    return *gram;
  }

  Maker<float> make_single_;
  Maker<double> make_full_;
  std::vector<Segment> segments_;
  std::size_t cache_bytes_;
  int threads_;
  ThreadPool pool_;
  std::unique_ptr<Gram<float>> single_;
  std::unique_ptr<Gram<double>> full_;
};

std::vector<Segment> segments_of(const std::vector<Index>& lengths) {
  if (lengths.empty()) throw nb::value_error("at least one segment is needed");
  if (lengths.size() > most_segments) too_many(lengths.size(), most_segments, "classes", "merge classes, or are these values for a regression?");
  std::vector<Segment> segments;
  Index begin = 0;
  for (const Index n : lengths) {
    if (n < 1) throw nb::value_error("segments must not be empty");
    segments.push_back({begin, begin + n});
    begin += n;
  }
  return segments;
}

std::vector<Index> checked_order(const Ids& order, const std::vector<Segment>& segments, Index rows) {
  if (static_cast<Index>(order.shape(0)) != segments.back().end) throw nb::value_error("order and segments differ in length");
  std::vector<Index> ids(order.data(), order.data() + order.shape(0));
  for (const Index i : ids)
    if (i < 0 || i >= rows) throw nb::value_error("order names a row that is not there");
  return ids;
}

std::vector<Index> chosen(const std::vector<Index>& ids, const std::vector<Index>* some) {
  if (!some) return ids;
  std::vector<Index> out;
  for (const Index i : *some) out.push_back(ids[i]);
  return out;
}

std::unique_ptr<BoundMachine> kernel_machine(std::shared_ptr<Rows> rows, const Ids& order, const std::vector<Index>& lengths,
                                             const AnyKernel& kernel, std::size_t cache_bytes, int threads) {
  auto segments = segments_of(lengths);
  auto ids = checked_order(order, segments, rows->size);
  const bool sparse = rows->density() < sparse_below;
  const auto make = [=](auto tag, int workers, const std::vector<Index>* some) {
    using Real = decltype(tag);
    return std::make_unique<KernelRows<Real>>(rows, chosen(ids, some), kernel, sparse, workers);
  };
  return std::make_unique<BoundMachine>([=](int t, const std::vector<Index>* some) { return make(float(), t, some); },
                                        [=](int t, const std::vector<Index>* some) { return make(double(), t, some); },
                                        std::move(segments), cache_bytes, threads);
}

template <class T>
std::unique_ptr<BoundMachine> matrix_machine_of(const Array& matrix, std::vector<Index> ids, std::vector<Segment> segments,
                                                std::size_t cache_bytes, int threads) {
  const T* data = numbers<T>(matrix);
  const auto row = matrix.stride(0), column = matrix.stride(1);
  return std::make_unique<BoundMachine>(
      [=](int, const std::vector<Index>* some) { return std::make_unique<MatrixRows<float, T>>(data, row, column, chosen(ids, some)); },
      [=](int, const std::vector<Index>* some) { return std::make_unique<MatrixRows<double, T>>(data, row, column, chosen(ids, some)); },
      std::move(segments), cache_bytes, threads);
}

std::unique_ptr<BoundMachine> matrix_machine(const Array& matrix, const Ids& order, const std::vector<Index>& lengths,
                                             std::size_t cache_bytes, int threads) {
  if (matrix.ndim() != 2 || matrix.shape(0) != matrix.shape(1)) throw nb::value_error("expected a square matrix");
  auto segments = segments_of(lengths);
  auto ids = checked_order(order, segments, static_cast<Index>(matrix.shape(0)));
  if (matrix.dtype() == nb::dtype<float>()) return matrix_machine_of<float>(matrix, std::move(ids), std::move(segments), cache_bytes, threads);
  if (matrix.dtype() == nb::dtype<double>()) return matrix_machine_of<double>(matrix, std::move(ids), std::move(segments), cache_bytes, threads);
  throw nb::type_error("expected float32 or float64");
}

std::unique_ptr<BoundMachine> function_machine(nb::object function, const Vector& diagonal, const std::vector<Index>& lengths,
                                               std::size_t cache_bytes, int threads) {
  auto segments = segments_of(lengths);
  std::vector<double> values(diagonal.data(), diagonal.data() + diagonal.shape(0));
  if (static_cast<Index>(values.size()) != segments.back().end) throw nb::value_error("diagonal and segments differ in length");
  const auto make = [=](auto tag, const std::vector<Index>* some) {
    nb::gil_scoped_acquire gil;  // the function is a Python object
    using Source = FunctionRows<decltype(tag)>;
    return some ? std::unique_ptr<Source>() : std::make_unique<Source>(function, values);  // always all rows
  };
  return std::make_unique<BoundMachine>([=](int, const std::vector<Index>* some) { return make(float(), some); },
                                        [=](int, const std::vector<Index>* some) { return make(double(), some); },
                                        std::move(segments), cache_bytes, threads);
}

nb::dict solve_machine(BoundMachine& machine, const std::vector<int>& view, const Vector& linear, const Vector& lower,
                       const Vector& upper, const Vector& ridge, std::optional<Vector> side, double total, double tolerance,
                       Index max_steps, bool double_rows, double power, int block, double keep, std::optional<Vector> start,
                       std::optional<Vector> start_product, bool exact, nb::object callback) {
  const Index n = static_cast<Index>(linear.shape(0));
  for (const Vector* v : {&lower, &upper, &ridge})
    if (static_cast<Index>(v->shape(0)) != n) throw nb::value_error("linear, lower, upper and ridge differ in length");
  if (total < infinity && (!side || static_cast<Index>(side->shape(0)) != n)) throw nb::value_error("a cap needs the side of each variable");
  for (const auto* v : {&start, &start_product})
    if (*v && static_cast<Index>((*v)->shape(0)) != n) throw nb::value_error("start has a wrong length");
  if (start_product && !start) throw nb::value_error("start_product needs start");
  if (!(power > 1)) throw nb::value_error("power must be above 1");
  const Problem problem{n, linear.data(), lower.data(), upper.data(), ridge.data(), side ? side->data() : nullptr, total, power};
  Options options;
  options.tolerance = tolerance;
  options.max_steps = max_steps;
  options.block = block;
  options.keep = keep;
  options.exact = exact;
  const Start from{start ? start->data() : nullptr, start_product ? start_product->data() : nullptr};
  Solution s;
  {
    PythonMonitor monitor(std::move(callback));
    nb::gil_scoped_release release;
    s = solve(machine, view, problem, options, double_rows, from, monitor);
  }
  nb::dict result;
  const std::size_t size = static_cast<std::size_t>(n);
  result["duals"] = to_numpy(std::move(s.a), {size});
  result["product"] = to_numpy(std::move(s.product), {size});
  result["violation"] = s.certificate.violation;
  result["gap"] = s.certificate.relative();
  result["dual"] = s.certificate.dual;
  result["steps"] = s.steps;
  result["rounds"] = s.rounds;
  result["rows"] = s.rows;
  result["converged"] = s.converged;
  result["negative_curvature"] = s.negative_curvature;
  result["double_rows"] = s.used_double;
  return result;
}

// Many problems in one call: their numbers one after the other, `lengths` of them for each. Bias, objective and gap count
// only where `certified`.
nb::dict solve_all_machine(BoundMachine& machine, const std::vector<std::vector<int>>& views, const std::vector<Index>& lengths,
                           const Vector& linear, const Vector& lower, const Vector& upper, const Vector& ridge,
                           std::optional<Vector> side, const Vector& totals, double tolerance, const Ids& max_steps, bool double_rows,
                           bool certify, nb::object callback) {
  const std::size_t count = views.size(), n = linear.shape(0);
  for (const Vector* v : {&lower, &upper, &ridge})
    if (v->shape(0) != n) throw nb::value_error("linear, lower, upper and ridge differ in length");
  if (lengths.size() != count || totals.shape(0) != count || max_steps.shape(0) != count)
    throw nb::value_error("views, lengths, totals and max_steps differ in length");
  std::vector<Job> jobs;
  std::size_t first = 0;
  for (std::size_t k = 0; k < count; ++k) {
    if (lengths[k] < 1 || static_cast<std::size_t>(lengths[k]) > n - first) throw nb::value_error("lengths do not sum to that of linear");
    const bool capped = totals.data()[k] < infinity;
    if (capped && (!side || side->shape(0) != n)) throw nb::value_error("a cap needs the side of each variable");
    Options options;
    options.tolerance = tolerance;
    options.max_steps = max_steps.data()[k];
    jobs.push_back({views[k],
                    {lengths[k], linear.data() + first, lower.data() + first, upper.data() + first, ridge.data() + first,
                     capped ? side->data() + first : nullptr, totals.data()[k]},
                    options});
    first += static_cast<std::size_t>(lengths[k]);
  }
  if (first != n) throw nb::value_error("lengths do not sum to that of linear");
  std::vector<double> duals, product;
  const std::vector<const char*> names{"certified", "bias", "objective", "gap", "program_gap", "violation", "steps", "negative_curvature"};
  std::vector<std::vector<double>> table(names.size());
  {
    PythonMonitor monitor(std::move(callback));
    nb::gil_scoped_release release;
    duals.reserve(n);
    product.reserve(n);
    for (auto& column : table) column.reserve(count);
    for (const Answer& answer : solve_all(machine, jobs, double_rows, certify, monitor)) {
      const Solution& s = answer.solution;
      const Verdict& v = answer.verdict;
      duals.insert(duals.end(), s.a.begin(), s.a.end());
      product.insert(product.end(), s.product.begin(), s.product.end());
      const double row[] = {v.known ? 1.0 : 0.0, v.bias, v.primal, v.gap, s.certificate.relative(), s.certificate.violation,
                            static_cast<double>(s.steps), s.negative_curvature ? 1.0 : 0.0};
      for (std::size_t c = 0; c < names.size(); ++c) table[c].push_back(row[c]);
    }
  }
  nb::dict result;
  result["duals"] = to_numpy(std::move(duals), {n});
  result["product"] = to_numpy(std::move(product), {n});
  for (std::size_t c = 0; c < names.size(); ++c) result[names[c]] = to_numpy(std::move(table[c]), {count});
  return result;
}

std::vector<std::size_t> shape_of(const Matrix& x) { return {x.shape(0), x.shape(1)}; }

// Rows of x times the kernel matrix of the view.
nb::ndarray<nb::numpy, double> product(BoundMachine& machine, const std::vector<int>& view, const Matrix& x, bool single) {
  std::vector<double> out(x.shape(0) * x.shape(1), 0.0);
  {
    PythonMonitor monitor{nb::object()};
    nb::gil_scoped_release release;
    const auto run = [&](auto& gram) {
      const View all = gram.view(view);
      if (static_cast<std::size_t>(all.size()) != x.shape(1)) throw std::invalid_argument("x and the view differ in length");
      const double* values = x.data();
      const auto used = std::count_if(values, values + out.size(), [](double v) { return v != 0; });
      if (x.shape(0) == 1 && 2 * static_cast<std::size_t>(used) < out.size()) {  // few rows serve it
        gram.subtract_product(all, values, out.data(), monitor);
        for (double& v : out) v = -v;
      } else {
        gram.add_symmetric_product(all, values, small(x.shape(0), "rows of x"), out.data(), monitor);
      }
    };
    if (single)
      run(machine.single());
    else
      run(machine.full());
  }
  return to_numpy(std::move(out), shape_of(x));
}

nb::ndarray<nb::numpy, double> diagonal(BoundMachine& machine, const std::vector<int>& view) {
  Gram<double>& gram = machine.full();
  const View all = gram.view(view);
  std::vector<double> out(all.size());
  for (Index v = 0; v < all.size(); ++v) out[v] = gram.diagonal()[all.position(v)];
  return to_numpy(std::move(out), {static_cast<std::size_t>(all.size())});
}

// Rows of the view's kernel matrix, in double.
nb::ndarray<nb::numpy, double> matrix_rows(BoundMachine& machine, const std::vector<int>& view, const Ids& variables) {
  const std::size_t count = variables.shape(0);
  std::vector<double> out;
  std::size_t size = 0;
  {
    PythonMonitor monitor{nb::object()};
    nb::gil_scoped_release release;
    Gram<double>& gram = machine.full();
    const View all = gram.view(view);
    size = static_cast<std::size_t>(all.size());
    std::vector<Index> chosen(variables.data(), variables.data() + count);
    for (const Index v : chosen)
      if (v < 0 || v >= all.size()) throw std::invalid_argument("a variable that the view does not have");
    out.resize(count * size);
    gram.copy_rows(all, chosen, out.data(), monitor);
  }
  return to_numpy(std::move(out), {count, size});
}

constexpr Index brief_work = 1 << 16;  // products that take less time than to let go of the GIL

nb::ndarray<nb::numpy, double> decide(const AnyKernel& kernel, const std::shared_ptr<Rows>& vectors, const std::shared_ptr<Rows>& x,
                                      const Matrix& coef, const Vector& bias, bool single, int threads) {
  const int outputs = small(coef.shape(0), "binary problems");
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
  Doubles values(model.outputs());
  if (!row_values(model, x, values.get())) return nb::none();
  if (model.shown() == 1) return nb::float_(values.get()[0]);
  std::vector<double> out(model.shown());
  model.show(values.get(), out.data());
  return nb::cast(to_numpy(std::move(out), {static_cast<std::size_t>(model.shown())}));
}

nb::object winner(const RowModel& model, nb::handle x) {
  Doubles values(model.outputs());
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

// k(x, z), computed in Real, into a matrix of float or double, strips of x in parallel.
template <class Real, class Out>
void kernel_into(const AnyKernel& kernel, const Rows& x, const Rows& z, Out* out, int threads, Monitor& monitor) {
  constexpr Index strip = 128;
  const Index n = x.size, m = z.size;
  ThreadPool pool(static_cast<int>(std::min<Index>(threads, std::max<Index>(1, n / strip))));
  const auto blocks = make_blocks<Real>(kernel, x.width, x.density() < sparse_below);
  std::vector<Index> left_ids(m), ids(n);
  std::iota(left_ids.begin(), left_ids.end(), Index(0));
  std::iota(ids.begin(), ids.end(), Index(0));
  struct Local {
    Scratch<Real> scratch;
    Buffer<Real> block;
  };
  std::vector<Local> local(pool.size());
  Left<Real> left;
  const Index chunk = blocks->chunk(x.width);
  for (Index first = 0; first < m; first += chunk) {
    const int count = static_cast<int>(std::min(chunk, m - first));
    blocks->prepare(z, left_ids.data() + first, count, left);
    pool.run(
        static_cast<std::size_t>((n + strip - 1) / strip),
        [&](std::size_t t, int thread) {
          const Index begin = static_cast<Index>(t) * strip;
          const int columns = static_cast<int>(std::min(strip, n - begin));
          Local& mine = local[thread];
          Real* values = mine.block.reserve(static_cast<std::size_t>(count) * strip);
          std::vector<Real*> rows(count);
          for (int j = 0; j < count; ++j) rows[j] = values + j * strip;
          blocks->pack(x, ids.data() + begin, columns, mine.scratch.strip);
          blocks->evaluate(left, count, mine.scratch.strip, x.width, 0, columns, rows.data(), mine.scratch);
          for (int i = 0; i < columns; ++i) {
            Out* row = out + (begin + i) * m + first;
            for (int j = 0; j < count; ++j) row[j] = static_cast<Out>(rows[j][i]);
          }
        },
        monitor);
  }
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
  else if (blurred_in_float(kernel, *z))
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

nb::tuple smooth_machine(Matrix features, Vector y, Vector c, Vector start, double width, double least, double most, double tol,
                         int max_steps) {
  const std::size_t n = features.shape(0), m = features.shape(1);
  if (y.shape(0) != n || c.shape(0) != n || start.shape(0) != m + 1) throw nb::value_error("sizes do not fit");
  const SmoothMachine machine{features.data(), small(n, "rows"), small(m, "features"), y.data(), c.data(), {width, least, most}};
  SmoothSolution found;
  found.w.assign(start.data(), start.data() + m + 1);
  found.f.resize(n);
  {
    nb::gil_scoped_release release;
    dispatch<SmoothNewton>(&machine, tol, max_steps, &found);
  }
  return nb::make_tuple(to_numpy(std::move(found.w), {m + 1}), to_numpy(std::move(found.f), {n}), found.steps, found.converged,
                        found.exact);
}

// Passes over rows together with the arrays that their labels look at.
class BoundPasses {
 public:
  BoundPasses(std::shared_ptr<Rows> rows, Labels labels, std::vector<Array> held, bool single, std::size_t keep, int threads)
      : held_(std::move(held)) {
    if (single)
      passes_ = std::make_unique<Passes<float>>(std::move(rows), std::move(labels), threads, keep);
    else
      passes_ = std::make_unique<Passes<double>>(std::move(rows), std::move(labels), threads, keep);
  }

  void use(int threads) {
    nb::gil_scoped_release release;
    passes_->use(threads);
  }
  void look(std::shared_ptr<Rows> x, const AnyKernel& kernel, const std::shared_ptr<Rows>& z, const Matrix& T) {
    check_look(*x, *z);
    if (static_cast<Index>(T.shape(0)) != z->size) throw nb::value_error("T must have a row for each vector");
    nb::gil_scoped_release release;
    passes_->look(std::move(x), kernel, *z, T.data(), static_cast<int>(T.shape(1)));
  }
  // The same through features in which beta'(k(Z, Z) + diag(epsilon + jitter |k(z, z)|)) beta is a plain norm, k(Z, Z), and
  // T. None where that matrix is not safely positive definite: then nothing is looked at.
  std::optional<nb::tuple> look_whitened(std::shared_ptr<Rows> x, const AnyKernel& kernel, const std::shared_ptr<Rows>& z, double epsilon, double jitter) {
    check_look(*x, *z);
    const std::size_t m = static_cast<std::size_t>(z->size);
    std::vector<double> gram(m * m), T(m * m);
    bool safe = false;
    run([&](Monitor& monitor) {
      kernel_into<double>(kernel, *z, *z, gram.data(), 1, monitor);
      safe = inverse_root(gram.data(), static_cast<int>(m), epsilon, jitter, T.data());
      if (safe) passes_->look(std::move(x), kernel, *z, T.data(), static_cast<int>(m));
    });
    if (!safe) return std::nullopt;
    return nb::make_tuple(to_numpy(std::move(gram), {m, m}), to_numpy(std::move(T), {m, m}));
  }
  nb::tuple equations(const Which& which, const Matrix& w, double width, double least, double most) {
    const std::size_t outputs = checked(which, w), size = w.shape(1);
    std::vector<double> value(outputs), moments(outputs * size), grams(outputs * size * size);
    run([&](Monitor& monitor) {
      passes_->equations(which, w.data(), {width, least, most}, value.data(), moments.data(), grams.data(), monitor);
    });
    return nb::make_tuple(to_numpy(std::move(value), {outputs}), to_numpy(std::move(moments), {outputs, size}),
                          to_numpy(std::move(grams), {outputs, size, size}));
  }
  nb::tuple newton(const Which& which, const Matrix& start, const Vector& bias_curvature, double width, double least, double most, double tol,
                   int max_steps) {
    const std::size_t outputs = checked(which, start), size = start.shape(1);
    if (bias_curvature.shape(0) != outputs) throw nb::value_error("bias_curvature must have a value for each output");
    Descent found;
    run([&](Monitor& monitor) {
      NewtonOverPasses method(*passes_, {width, least, most}, monitor);
      found = method.run(which, std::vector<double>(start.data(), start.data() + outputs * size), bias_curvature.data(), tol, max_steps);
    });
    return nb::make_tuple(to_numpy(std::move(found.V), {outputs, size}), found.steps, std::vector<bool>(found.converged.begin(), found.converged.end()),
                          found.exact);
  }
  nb::tuple line(const Which& which, const Matrix& w, const Matrix& step, const Matrix& t, double width, double least, double most) {
    const std::size_t outputs = checked(which, w), tries = t.shape(1);
    if (checked(which, step) != t.shape(0)) throw nb::value_error("t must have a row for each output");
    std::vector<double> first(outputs * tries), second(outputs * tries);
    run([&](Monitor& monitor) {
      passes_->line(which, w.data(), step.data(), t.data(), static_cast<int>(tries), {width, least, most}, first.data(), second.data(),
                    monitor);
    });
    return nb::make_tuple(to_numpy(std::move(first), {outputs, tries}), to_numpy(std::move(second), {outputs, tries}));
  }
  nb::tuple pull(const Which& which, const Matrix& w, const Matrix& beta, double width, double least, double most, bool scales) {
    const std::size_t outputs = checked(which, w), vectors = static_cast<std::size_t>(passes_->vectors());
    const std::size_t inputs = static_cast<std::size_t>(passes_->inputs());
    if (beta.shape(0) != vectors || beta.shape(1) != outputs) throw nb::value_error("beta must be vectors x outputs");
    std::vector<double> value(outputs), products(vectors * (inputs + 1)), squares(inputs);  // zeros where scales are not learned
    run([&](Monitor& monitor) {
      passes_->pull(which, w.data(), beta.data(), {width, least, most}, value.data(), products.data(),
                    scales ? squares.data() : nullptr, monitor);
    });
    return nb::make_tuple(to_numpy(std::move(value), {outputs}), to_numpy(std::move(products), {vectors, inputs + 1}),
                          to_numpy(std::move(squares), {inputs}));
  }
  nb::ndarray<nb::numpy, double> evidence(const Which& which, const Matrix& w, double width, double least, double most,
                                          const std::vector<std::pair<Ids, Vector>>& known, const Vector& reach, double units) {
    const std::size_t outputs = checked(which, w), own = evidence_count + 2 * static_cast<std::size_t>(passes_->features());
    if (reach.shape(0) != outputs || (!known.empty() && known.size() != outputs)) throw nb::value_error("a number for each output is needed");
    std::vector<Known> duals;
    for (const auto& [rows, values] : known) {
      if (rows.shape(0) != values.shape(0)) throw nb::value_error("rows and duals differ in length");
      Index before = -1;
      for (std::size_t i = 0; i < rows.shape(0); before = rows(i++))
        if (rows(i) <= before || rows(i) >= passes_->size()) throw nb::value_error("rows of known duals must ascend, and be there");
      duals.push_back({rows.data(), values.data(), static_cast<Index>(rows.shape(0))});
    }
    std::vector<double> out(outputs * own);
    run([&](Monitor& monitor) {
      passes_->evidence(which, w.data(), {width, least, most}, duals, reach.data(), units, out.data(), monitor);
    });
    return to_numpy(std::move(out), {outputs, own});
  }
  nb::ndarray<nb::numpy, double> values(const Which& which, const Matrix& w, Index begin, Index end) {
    const std::size_t outputs = checked(which, w);
    if (begin < 0 || end < begin || end > passes_->size()) throw nb::value_error("rows that are not there");
    std::vector<double> out(static_cast<std::size_t>(end - begin) * outputs);
    if (end > begin) run([&](Monitor& monitor) { passes_->values(which, w.data(), begin, end, out.data(), monitor); });
    return to_numpy(std::move(out), {static_cast<std::size_t>(end - begin), outputs});
  }
  nb::ndarray<nb::numpy, double> features(const Ids& rows) {
    const std::size_t count = rows.shape(0), features = static_cast<std::size_t>(passes_->features());
    for (std::size_t i = 0; i < count; ++i)
      if (rows(i) < 0 || rows(i) >= passes_->size()) throw nb::value_error("a row that is not there");
    std::vector<double> out(count * features);
    run([&](Monitor& monitor) { passes_->features_at(rows.data(), static_cast<Index>(count), out.data(), monitor); });
    return to_numpy(std::move(out), {count, features});
  }

 private:
  void check_look(const Rows& x, const Rows& z) const {
    if (x.size != passes_->size()) throw nb::value_error("the number of rows has changed");
    if (x.width != z.width) throw nb::value_error("rows and vectors differ in width");
  }
  std::size_t checked(const Which& which, const Matrix& w) const {
    if (w.shape(0) != which.size() || static_cast<int>(w.shape(1)) != passes_->features() + 1)
      throw nb::value_error("weights must be outputs x (features + 1)");
    for (const int o : which)
      if (o < 0 || o >= passes_->outputs()) throw nb::value_error("an output that is not there");
    return w.shape(0);
  }
  template <class Work>
  static void run(Work work) {
    PythonMonitor monitor{nb::object()};
    nb::gil_scoped_release release;
    work(monitor);
  }

  std::vector<Array> held_;
  std::unique_ptr<AnyPasses> passes_;
};

std::unique_ptr<BoundPasses> class_passes(std::shared_ptr<Rows> rows, const Flat& codes, const Array& counts, const Matrix& side,
                                          const Matrix& cost, bool single, std::size_t keep, int threads) {
  const std::size_t n = static_cast<std::size_t>(rows->size), classes = side.shape(0), outputs = side.shape(1);
  if (codes.shape(0) != n || counts.ndim() != 1 || counts.shape(0) != n) throw nb::value_error("codes and counts must have one value for each row");
  if (cost.shape(0) != classes || cost.shape(1) != outputs) throw nb::value_error("side and cost differ in shape");
  if (counts.dtype() != nb::dtype<double>()) throw nb::type_error("expected counts of type float64");
  if (codes.dtype().code != static_cast<std::uint8_t>(nb::dlpack::dtype_code::Int)) throw nb::type_error("expected class numbers of a signed type");
  Labels labels;
  labels.codes = codes.data();
  labels.code_bytes = static_cast<int>(codes.itemsize());
  labels.counts = numbers<double>(counts);
  labels.count_step = counts.stride(0);
  labels.outputs = static_cast<int>(outputs);
  labels.side.assign(side.data(), side.data() + classes * outputs);
  labels.cost.assign(cost.data(), cost.data() + classes * outputs);
  for (std::size_t i = 0; i < n; ++i)
    if (const int code = labels.code(static_cast<Index>(i)); code < 0 || static_cast<std::size_t>(code) >= classes)
      throw nb::value_error("a class number is out of range");
  return std::make_unique<BoundPasses>(std::move(rows), std::move(labels), std::vector<Array>{Array(codes), counts}, single, keep, threads);
}

std::unique_ptr<BoundPasses> row_passes(std::shared_ptr<Rows> rows, const Matrix& sides, const Matrix& costs, bool single, std::size_t keep,
                                        int threads) {
  const std::size_t n = static_cast<std::size_t>(rows->size), outputs = sides.shape(1);
  if (sides.shape(0) != n || costs.shape(0) != n || costs.shape(1) != outputs) throw nb::value_error("sides and costs must be rows x outputs");
  Labels labels;
  labels.sides = sides.data();
  labels.costs = costs.data();
  labels.outputs = static_cast<int>(outputs);
  return std::make_unique<BoundPasses>(std::move(rows), std::move(labels), std::vector<Array>{Array(sides), Array(costs)}, single, keep,
                                       threads);
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
  m.def("linear", [] { return AnyKernel(Linear{}); });
  m.def("gaussian", [](double gamma) { return AnyKernel(Gaussian{gamma}); }, "gamma"_a);
  m.def("laplacian", [](double gamma) { return AnyKernel(Laplacian{gamma}); }, "gamma"_a);
  m.def("polynomial", [](double gamma, double coef0, int degree) { return AnyKernel(Polynomial{gamma, coef0, degree}); }, "gamma"_a, "coef0"_a,
        "degree"_a);
  m.def("sigmoid", [](double gamma, double coef0) { return AnyKernel(Sigmoid{gamma, coef0}); }, "gamma"_a, "coef0"_a);
  m.def("kernel_matrix", &kernel_matrix, "kernel"_a, "x"_a, "z"_a, "out"_a, "threads"_a = 1);

  nb::class_<BoundMachine>(m, "Machine", "Kernel rows of one training set, cached, and the solver over them.")
      .def("solve", &solve_machine, "view"_a, "linear"_a, "lower"_a, "upper"_a, "ridge"_a, "side"_a.none(), "total"_a, "tolerance"_a,
           "max_steps"_a = -1, "double_rows"_a = false, "power"_a = 2.0, "block"_a = 512, "keep"_a = 0.75, "start"_a = nb::none(),
           "start_product"_a = nb::none(), "exact"_a = true, "callback"_a = nb::none())
      .def("solve_all", &solve_all_machine, "views"_a, "lengths"_a, "linear"_a, "lower"_a, "upper"_a, "ridge"_a, "side"_a.none(),
           "totals"_a, "tolerance"_a, "max_steps"_a, "double_rows"_a = false, "certify"_a = false, "callback"_a = nb::none())
      .def("product", &product, "view"_a, "x"_a, "single"_a = false)
      .def("rows", &matrix_rows, "view"_a, "variables"_a)
      .def("diagonal", &diagonal, "view"_a);
  m.def("row_keys", &keys_of, "x"_a, "constants"_a, "threads"_a = 1);
  m.def("key_part", &key_part, "keys"_a, "bits"_a, "part"_a);
  m.def("kernel_machine", &kernel_machine, "rows"_a, "order"_a, "lengths"_a, "kernel"_a, "cache_bytes"_a, "threads"_a = 1);
  m.def("matrix_machine", &matrix_machine, "matrix"_a, "order"_a, "lengths"_a, "cache_bytes"_a, "threads"_a = 1, nb::keep_alive<0, 1>());
  m.def("function_machine", &function_machine, "function"_a, "diagonal"_a, "lengths"_a, "cache_bytes"_a, "threads"_a = 1);
  nb::class_<BoundPasses>(m, "Passes", "Sums over rows for machines over few vectors.")
      .def("look", &BoundPasses::look, "rows"_a, "kernel"_a, "vectors"_a, "T"_a)
      .def("equations", &BoundPasses::equations, "which"_a, "w"_a, "width"_a, "least"_a, "most"_a)
      .def("newton", &BoundPasses::newton, "which"_a, "start"_a, "bias_curvature"_a, "width"_a, "least"_a, "most"_a, "tol"_a, "max_steps"_a)
      .def("line", &BoundPasses::line, "which"_a, "w"_a, "step"_a, "t"_a, "width"_a, "least"_a, "most"_a)
      .def("use", &BoundPasses::use, "threads"_a)
      .def("look_whitened", &BoundPasses::look_whitened, "x"_a, "kernel"_a, "z"_a, "epsilon"_a, "jitter"_a)
      .def("pull", &BoundPasses::pull, "which"_a, "w"_a, "beta"_a, "width"_a, "least"_a, "most"_a, "scales"_a = true)
      .def("evidence", &BoundPasses::evidence, "which"_a, "w"_a, "width"_a, "least"_a, "most"_a, "known"_a, "reach"_a, "units"_a)
      .def("values", &BoundPasses::values, "which"_a, "w"_a, "begin"_a, "end"_a)
      .def("features", &BoundPasses::features, "rows"_a);
  m.def("class_passes", &class_passes, "rows"_a, "codes"_a, "counts"_a, "side"_a, "cost"_a, "single"_a, "keep"_a, "threads"_a = 1);
  m.def("row_passes", &row_passes, "rows"_a, "sides"_a, "costs"_a, "single"_a, "keep"_a, "threads"_a = 1);
  m.def("smooth_machine", &smooth_machine, "features"_a, "y"_a, "c"_a, "start"_a, "width"_a, "least"_a, "most"_a, "tol"_a, "max_steps"_a);
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
  bind_linear(m);
  m.def("pair_scores", &pair_scores, "values"_a, "classes"_a, "by_value"_a, "zero_is_positive"_a);
}
