// The kernel matrix of a training set for Python: kernel rows of any origin, and the solver over them.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "bindings/bindings.hpp"
#include "matrix/sources.hpp"
#include "smo/feasible_duals.hpp"
#include "smo/solver.hpp"

namespace slimsvm {

using namespace nb::literals;

namespace {

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

// The kernel matrix of one fit: its threads, its cache, its rows.
class BoundKernelMatrix final : public KernelMatrices {
 public:
  // Rows of the given precision; of all positions, or of those in the list.
  template <class Real>
  using Maker = std::function<std::unique_ptr<RowSource<Real>>(int threads, const std::vector<Index>* some)>;

  BoundKernelMatrix(Maker<float> single, Maker<double> full, std::vector<Segment> segments, std::size_t cache_bytes, int threads,
               double degree = 0)
      : make_single_(std::move(single)),
        make_full_(std::move(full)),
        segments_(std::move(segments)),
        cache_bytes_(cache_bytes),
        threads_(threads),
        pool_(threads) {
    dot_product_degree = degree;
  }

  KernelMatrix<float>& in_float() override { return get(single_, make_single_, cache_bytes_ / 4); }
  // Mostly for certificates, which use each strip once: none are kept.
  KernelMatrix<double>& in_double() override { return get(full_, make_full_, 0); }
  void release_float() override { single_.reset(); }
  std::unique_ptr<KernelMatrix<float>> subset(const std::vector<Index>& positions) override {
    auto source = make_single_(threads_, &positions);
    if (!source) return nullptr;
    std::vector<Segment> one{{0, static_cast<Index>(positions.size())}};
    return std::make_unique<KernelMatrix<float>>(std::move(source), std::move(one), cache_bytes_, cache_bytes_ / 4, pool_);
  }

 private:
  template <class Real>
  KernelMatrix<Real>& get(std::unique_ptr<KernelMatrix<Real>>& kernel, const Maker<Real>& make, std::size_t strip_bytes) {
    if (!kernel) kernel = std::make_unique<KernelMatrix<Real>>(make(threads_, nullptr), segments_, cache_bytes_, strip_bytes, pool_);
    return *kernel;
  }

  Maker<float> make_single_;
  Maker<double> make_full_;
  std::vector<Segment> segments_;
  std::size_t cache_bytes_;
  int threads_;
  ThreadPool pool_;
  std::unique_ptr<KernelMatrix<float>> single_;
  std::unique_ptr<KernelMatrix<double>> full_;
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

std::unique_ptr<BoundKernelMatrix> matrix_of_kernel(std::shared_ptr<Rows> rows, const Ids& order, const std::vector<Index>& lengths,
                                             const AnyKernel& kernel, std::size_t cache_bytes, int threads) {
  auto segments = segments_of(lengths);
  auto ids = checked_order(order, segments, rows->size);
  const bool sparse = rows->density() < sparse_below;
  const auto make = [=](auto tag, int workers, const std::vector<Index>* some) {
    using Real = decltype(tag);
    return std::make_unique<KernelRows<Real>>(rows, chosen(ids, some), kernel, sparse, workers);
  };
  return std::make_unique<BoundKernelMatrix>([=](int t, const std::vector<Index>* some) { return make(float(), t, some); },
                                        [=](int t, const std::vector<Index>* some) { return make(double(), t, some); },
                                        std::move(segments), cache_bytes, threads,
                                        kernel->dot_product_degree());
}

template <class T>
std::unique_ptr<BoundKernelMatrix> matrix_of_values_in(const Array& matrix, std::vector<Index> ids, std::vector<Segment> segments,
                                                std::size_t cache_bytes, int threads) {
  const T* data = numbers<T>(matrix);
  const auto row = matrix.stride(0), column = matrix.stride(1);
  return std::make_unique<BoundKernelMatrix>(
      [=](int, const std::vector<Index>* some) { return std::make_unique<MatrixRows<float, T>>(data, row, column, chosen(ids, some)); },
      [=](int, const std::vector<Index>* some) { return std::make_unique<MatrixRows<double, T>>(data, row, column, chosen(ids, some)); },
      std::move(segments), cache_bytes, threads);
}

std::unique_ptr<BoundKernelMatrix> matrix_of_values(const Array& matrix, const Ids& order, const std::vector<Index>& lengths,
                                             std::size_t cache_bytes, int threads) {
  if (matrix.ndim() != 2 || matrix.shape(0) != matrix.shape(1)) throw nb::value_error("expected a square matrix");
  auto segments = segments_of(lengths);
  auto ids = checked_order(order, segments, static_cast<Index>(matrix.shape(0)));
  if (matrix.dtype() == nb::dtype<float>()) return matrix_of_values_in<float>(matrix, std::move(ids), std::move(segments), cache_bytes, threads);
  if (matrix.dtype() == nb::dtype<double>()) return matrix_of_values_in<double>(matrix, std::move(ids), std::move(segments), cache_bytes, threads);
  throw nb::type_error("expected float32 or float64");
}

std::unique_ptr<BoundKernelMatrix> matrix_of_function(nb::object function, const Vector& diagonal, const std::vector<Index>& lengths,
                                               std::size_t cache_bytes, int threads) {
  auto segments = segments_of(lengths);
  std::vector<double> values(diagonal.data(), diagonal.data() + diagonal.shape(0));
  if (static_cast<Index>(values.size()) != segments.back().end) throw nb::value_error("diagonal and segments differ in length");
  const auto make = [=](auto tag, const std::vector<Index>* some) {
    nb::gil_scoped_acquire gil;  // the function is a Python object
    using Source = FunctionRows<decltype(tag)>;
    return some ? std::unique_ptr<Source>() : std::make_unique<Source>(function, values);  // always all rows
  };
  return std::make_unique<BoundKernelMatrix>([=](int, const std::vector<Index>* some) { return make(float(), some); },
                                        [=](int, const std::vector<Index>* some) { return make(double(), some); },
                                        std::move(segments), cache_bytes, threads);
}

// Sums that are given need bounds that can meet them; duals of a side then have one sign.
void check_sums(const Problem& p) {
  if (p.centred()) return;
  for (Index i = 0; i < p.size; ++i) {
    const double sign = p.exact ? p.side[i] : p.sum;
    if (!(sign > 0 ? p.lower[i] >= 0 && p.upper[i] < infinity : p.upper[i] <= 0 && p.lower[i] > -infinity))
      throw nb::value_error("given sums need finite bounds, and duals of one sign");
  }
  if (!feasible_sums(p)) throw nb::value_error("no duals within the bounds have the sums that are given");
}

nb::dict solve_problem(BoundKernelMatrix& matrices, const std::vector<int>& view, const Vector& linear, const Vector& lower,
                       const Vector& upper, const Vector& ridge, std::optional<Vector> side, double total, double tolerance,
                       Index max_steps, bool double_rows, double power, int block, double keep, std::optional<Vector> start,
                       std::optional<Vector> start_product, bool exact, nb::object callback, double sum, bool exact_total) {
  const Index n = static_cast<Index>(linear.shape(0));
  for (const Vector* v : {&lower, &upper, &ridge})
    if (static_cast<Index>(v->shape(0)) != n) throw nb::value_error("linear, lower, upper and ridge differ in length");
  if (total < infinity && (!side || static_cast<Index>(side->shape(0)) != n)) throw nb::value_error("a cap needs the side of each variable");
  for (const auto* v : {&start, &start_product})
    if (*v && static_cast<Index>((*v)->shape(0)) != n) throw nb::value_error("start has a wrong length");
  if (start_product && !start) throw nb::value_error("start_product needs start");
  if (!(power > 1)) throw nb::value_error("power must be above 1");
  const Problem problem{n,    linear.data(), lower.data(), upper.data(), ridge.data(), side ? side->data() : nullptr, total, power, sum,
                        exact_total};
  check_sums(problem);
  Options options;
  options.tolerance = tolerance;
  options.max_steps = max_steps;
  options.block = block;
  options.keep = keep;
  options.exact = exact;
  const WarmStart from{start ? start->data() : nullptr, start_product ? start_product->data() : nullptr};
  Solution s;
  {
    PythonMonitor monitor(std::move(callback));
    nb::gil_scoped_release release;
    s = solve(matrices, view, problem, options, double_rows, from, monitor);
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
nb::dict solve_problems(BoundKernelMatrix& matrices, const std::vector<std::vector<int>>& views, const std::vector<Index>& lengths,
                           const Vector& linear, const Vector& lower, const Vector& upper, const Vector& ridge,
                           std::optional<Vector> side, const Vector& totals, double tolerance, const Ids& max_steps, bool double_rows,
                           bool certify, nb::object callback, std::optional<Vector> sums, bool exact_totals,
                           std::optional<Vector> starts, int block) {
  const std::size_t count = views.size(), n = linear.shape(0);
  for (const Vector* v : {&lower, &upper, &ridge})
    if (v->shape(0) != n) throw nb::value_error("linear, lower, upper and ridge differ in length");
  if (lengths.size() != count || totals.shape(0) != count || max_steps.shape(0) != count)
    throw nb::value_error("views, lengths, totals and max_steps differ in length");
  if (sums && sums->shape(0) != count) throw nb::value_error("views and sums differ in length");
  if (starts && starts->shape(0) != n) throw nb::value_error("linear and starts differ in length");
  std::vector<Job> jobs;
  std::size_t first = 0;
  for (std::size_t k = 0; k < count; ++k) {
    if (lengths[k] < 1 || static_cast<std::size_t>(lengths[k]) > n - first) throw nb::value_error("lengths do not sum to that of linear");
    const bool capped = totals.data()[k] < infinity;
    if (capped && (!side || side->shape(0) != n)) throw nb::value_error("a cap needs the side of each variable");
    Options options;
    options.tolerance = tolerance;
    options.max_steps = max_steps.data()[k];
    options.block = block;
    jobs.push_back({views[k],
                    {lengths[k], linear.data() + first, lower.data() + first, upper.data() + first, ridge.data() + first,
                     capped ? side->data() + first : nullptr, totals.data()[k], 2, sums ? sums->data()[k] : 0.0, capped && exact_totals},
                    options,
                    {starts ? starts->data() + first : nullptr, nullptr}});
    check_sums(jobs.back().problem);
    first += static_cast<std::size_t>(lengths[k]);
  }
  if (first != n) throw nb::value_error("lengths do not sum to that of linear");
  std::vector<double> duals, product;
  const std::vector<const char*> names{"certified", "bias",      "cap",   "objective",         "gap",
                                       "program_gap", "violation", "steps", "negative_curvature"};
  std::vector<std::vector<double>> table(names.size());
  {
    PythonMonitor monitor(std::move(callback));
    nb::gil_scoped_release release;
    duals.reserve(n);
    product.reserve(n);
    for (auto& column : table) column.reserve(count);
    for (const SolvedJob& solved : solve_all(matrices, jobs, double_rows, certify, monitor)) {
      const Solution& s = solved.solution;
      const PrimalCertificate& v = solved.certified;
      duals.insert(duals.end(), s.a.begin(), s.a.end());
      product.insert(product.end(), s.product.begin(), s.product.end());
      const double row[] = {v.known ? 1.0 : 0.0, v.bias, v.cap, v.primal, v.gap, s.certificate.relative(), s.certificate.violation,
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
nb::ndarray<nb::numpy, double> product(BoundKernelMatrix& matrices, const std::vector<int>& view, const Matrix& x, bool single) {
  std::vector<double> out(x.shape(0) * x.shape(1), 0.0);
  {
    PythonMonitor monitor{nb::object()};
    nb::gil_scoped_release release;
    const auto run = [&](auto& kernel) {
      const View all = kernel.view(view);
      if (static_cast<std::size_t>(all.size()) != x.shape(1)) throw std::invalid_argument("x and the view differ in length");
      const double* values = x.data();
      const auto used = std::count_if(values, values + out.size(), [](double v) { return v != 0; });
      if (x.shape(0) == 1 && 2 * static_cast<std::size_t>(used) < out.size()) {  // few rows serve it
        kernel.subtract_product(all, values, out.data(), monitor);
        for (double& v : out) v = -v;
      } else {
        kernel.add_symmetric_product(all, values, checked_int(x.shape(0), "rows of x"), out.data(), monitor);
      }
    };
    if (single)
      run(matrices.in_float());
    else
      run(matrices.in_double());
  }
  return to_numpy(std::move(out), shape_of(x));
}

nb::ndarray<nb::numpy, double> diagonal(BoundKernelMatrix& matrices, const std::vector<int>& view) {
  KernelMatrix<double>& kernel = matrices.in_double();
  const View all = kernel.view(view);
  std::vector<double> out(all.size());
  for (Index v = 0; v < all.size(); ++v) out[v] = kernel.diagonal()[all.position(v)];
  return to_numpy(std::move(out), {static_cast<std::size_t>(all.size())});
}

// Rows of the view's kernel matrix, in double.
nb::ndarray<nb::numpy, double> matrix_rows(BoundKernelMatrix& matrices, const std::vector<int>& view, const Ids& variables) {
  const std::size_t count = variables.shape(0);
  std::vector<double> out;
  std::size_t size = 0;
  {
    PythonMonitor monitor{nb::object()};
    nb::gil_scoped_release release;
    KernelMatrix<double>& kernel = matrices.in_double();
    const View all = kernel.view(view);
    size = static_cast<std::size_t>(all.size());
    std::vector<Index> chosen(variables.data(), variables.data() + count);
    for (const Index v : chosen)
      if (v < 0 || v >= all.size()) throw std::invalid_argument("a variable that the view does not have");
    out.resize(count * size);
    kernel.copy_rows(all, chosen, out.data(), monitor);
  }
  return to_numpy(std::move(out), {count, size});
}

}  // namespace

void bind_kernel_matrix(nb::module_& m) {
  nb::class_<BoundKernelMatrix>(m, "KernelMatrix", "The kernel matrix of one training set, rows of it cached, and the dual solver over them.")
      .def_static("of_kernel", &matrix_of_kernel, "rows"_a, "order"_a, "lengths"_a, "kernel"_a, "cache_bytes"_a, "threads"_a = 1)
      .def_static("of_matrix", &matrix_of_values, "matrix"_a, "order"_a, "lengths"_a, "cache_bytes"_a, "threads"_a = 1, nb::keep_alive<0, 1>())
      .def_static("of_function", &matrix_of_function, "function"_a, "diagonal"_a, "lengths"_a, "cache_bytes"_a, "threads"_a = 1)
      .def("solve", &solve_problem, "view"_a, "linear"_a, "lower"_a, "upper"_a, "ridge"_a, "side"_a.none(), "total"_a, "tolerance"_a,
           "max_steps"_a = -1, "double_rows"_a = false, "power"_a = 2.0, "block"_a = 512, "keep"_a = 0.75, "start"_a = nb::none(),
           "start_product"_a = nb::none(), "exact"_a = true, "callback"_a = nb::none(), "sum"_a = 0.0, "exact_total"_a = false)
      .def("solve_all", &solve_problems, "views"_a, "lengths"_a, "linear"_a, "lower"_a, "upper"_a, "ridge"_a, "side"_a.none(),
           "totals"_a, "tolerance"_a, "max_steps"_a, "double_rows"_a = false, "certify"_a = false, "callback"_a = nb::none(),
           "sums"_a = nb::none(), "exact_totals"_a = false, "starts"_a = nb::none(), "block"_a = 512)
      .def("product", &product, "view"_a, "x"_a, "single"_a = false)
      .def("rows", &matrix_rows, "view"_a, "variables"_a)
      .def("diagonal", &diagonal, "view"_a)
      .def_ro("dot_product_degree", &BoundKernelMatrix::dot_product_degree);
}

}  // namespace slimsvm
