// Passes over rows for Python, and Newton's method over few features.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "bindings/bindings.hpp"
#include "learning/newton_over_passes.hpp"
#include "kernels/values.hpp"
#include "learning/passes.hpp"
#include "learning/smooth_newton.hpp"
#include "linalg/whitening.hpp"

namespace slimsvm {

using namespace nb::literals;

namespace {

nb::tuple solve_smooth(Matrix features, Vector y, Vector c, Vector start, const QuadraticLoss& loss, double tol, int max_steps) {
  const std::size_t n = features.shape(0), m = features.shape(1);
  if (y.shape(0) != n || c.shape(0) != n || start.shape(0) != m + 1) throw nb::value_error("sizes do not fit");
  const SmoothProblem problem{features.data(), checked_int(n, "rows"), checked_int(m, "features"), y.data(), c.data(), loss};
  SmoothSolution found;
  found.w.assign(start.data(), start.data() + m + 1);
  found.f.resize(n);
  {
    nb::gil_scoped_release release;
    smooth_newton(problem, tol, max_steps, found);
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
      passes_ = make_passes<float>(std::move(rows), std::move(labels), threads, keep);
    else
      passes_ = make_passes<double>(std::move(rows), std::move(labels), threads, keep);
  }

  void use_threads(int threads) {
    nb::gil_scoped_release release;
    passes_->use_threads(threads);
  }
  void set_features(std::shared_ptr<Rows> x, const AnyKernel& kernel, const std::shared_ptr<Rows>& z, const Matrix& T) {
    check_rows(*x, *z);
    if (static_cast<Index>(T.shape(0)) != z->size) throw nb::value_error("T must have a row for each vector");
    nb::gil_scoped_release release;
    passes_->set_features(std::move(x), kernel, *z, T.data(), static_cast<int>(T.shape(1)));
  }
  // The same through features in ids beta'(k(Z, Z) + diag(epsilon + jitter |k(z, z)|)) beta is a plain norm, k(Z, Z), and
  // T. None where that matrix is not safely positive definite: then nothing changes.
  std::optional<nb::tuple> set_whitened_features(std::shared_ptr<Rows> x, const AnyKernel& kernel, const std::shared_ptr<Rows>& z, double epsilon, double jitter) {
    check_rows(*x, *z);
    const std::size_t m = static_cast<std::size_t>(z->size);
    std::vector<double> gram(m * m), T(m * m);
    bool safe = false;
    run([&](Monitor& monitor) {
      kernel_into<double>(kernel, *z, *z, gram.data(), 1, monitor);
      safe = inverse_root(gram.data(), static_cast<int>(m), epsilon, jitter, T.data());
      if (safe) passes_->set_features(std::move(x), kernel, *z, T.data(), static_cast<int>(m));
    });
    if (!safe) return std::nullopt;
    return nb::make_tuple(to_numpy(std::move(gram), {m, m}), to_numpy(std::move(T), {m, m}));
  }
  nb::tuple equations(const OutputIds& ids, const Matrix& w, const QuadraticLoss& loss) {
    const std::size_t outputs = checked(ids, w), size = w.shape(1);
    std::vector<double> value(outputs), moments(outputs * size), grams(outputs * size * size);
    run([&](Monitor& monitor) {
      passes_->equations(ids, w.data(), loss, value.data(), moments.data(), grams.data(), monitor);
    });
    return nb::make_tuple(to_numpy(std::move(value), {outputs}), to_numpy(std::move(moments), {outputs, size}),
                          to_numpy(std::move(grams), {outputs, size, size}));
  }
  nb::tuple newton(const OutputIds& ids, const Matrix& start, const Vector& bias_curvature, const QuadraticLoss& loss, double tol, int max_steps) {
    const std::size_t outputs = checked(ids, start), size = start.shape(1);
    if (bias_curvature.shape(0) != outputs) throw nb::value_error("bias_curvature must have a value for each output");
    NewtonResult found;
    run([&](Monitor& monitor) {
      found = newton_over_passes(*passes_, ids, std::vector<double>(start.data(), start.data() + outputs * size), bias_curvature.data(), loss, tol,
                                 max_steps, monitor);
    });
    return nb::make_tuple(to_numpy(std::move(found.V), {outputs, size}), found.steps, std::vector<bool>(found.converged.begin(), found.converged.end()),
                          found.exact);
  }
  nb::tuple line(const OutputIds& ids, const Matrix& w, const Matrix& step, const Matrix& t, const QuadraticLoss& loss) {
    const std::size_t outputs = checked(ids, w), tries = t.shape(1);
    if (checked(ids, step) != t.shape(0)) throw nb::value_error("t must have a row for each output");
    std::vector<double> first(outputs * tries), second(outputs * tries);
    run([&](Monitor& monitor) {
      passes_->line(ids, w.data(), step.data(), t.data(), static_cast<int>(tries), loss, first.data(), second.data(),
                    monitor);
    });
    return nb::make_tuple(to_numpy(std::move(first), {outputs, tries}), to_numpy(std::move(second), {outputs, tries}));
  }
  nb::tuple pullback(const OutputIds& ids, const Matrix& w, const Matrix& beta, const QuadraticLoss& loss, bool scales) {
    const std::size_t outputs = checked(ids, w), vectors = static_cast<std::size_t>(passes_->vectors());
    const std::size_t inputs = static_cast<std::size_t>(passes_->inputs());
    if (beta.shape(0) != vectors || beta.shape(1) != outputs) throw nb::value_error("beta must be vectors x outputs");
    std::vector<double> value(outputs), products(vectors * (inputs + 1)), squares(inputs);  // zeros where scales are not learned
    run([&](Monitor& monitor) {
      passes_->pullback(ids, w.data(), beta.data(), loss, value.data(), products.data(),
                    scales ? squares.data() : nullptr, monitor);
    });
    return nb::make_tuple(to_numpy(std::move(value), {outputs}), to_numpy(std::move(products), {vectors, inputs + 1}),
                          to_numpy(std::move(squares), {inputs}));
  }
  nb::ndarray<nb::numpy, double> certificate(const OutputIds& ids, const Matrix& w, const QuadraticLoss& loss,
                                          const std::vector<std::pair<Ids, Vector>>& known, const Vector& reach, double units) {
    const std::size_t outputs = checked(ids, w), own = certificate_sums + 2 * static_cast<std::size_t>(passes_->features());
    if (reach.shape(0) != outputs || (!known.empty() && known.size() != outputs)) throw nb::value_error("a number for each output is needed");
    std::vector<KnownDuals> duals;
    for (const auto& [rows, values] : known) {
      if (rows.shape(0) != values.shape(0)) throw nb::value_error("rows and duals differ in length");
      Index before = -1;
      for (std::size_t i = 0; i < rows.shape(0); before = rows(i++))
        if (rows(i) <= before || rows(i) >= passes_->size()) throw nb::value_error("rows of known duals must ascend, and be there");
      duals.push_back({rows.data(), values.data(), static_cast<Index>(rows.shape(0))});
    }
    std::vector<double> out(outputs * own);
    run([&](Monitor& monitor) {
      passes_->certificate(ids, w.data(), loss, duals, reach.data(), units, out.data(), monitor);
    });
    return to_numpy(std::move(out), {outputs, own});
  }
  nb::ndarray<nb::numpy, double> values(const OutputIds& ids, const Matrix& w, Index begin, Index end) {
    const std::size_t outputs = checked(ids, w);
    if (begin < 0 || end < begin || end > passes_->size()) throw nb::value_error("rows that are not there");
    std::vector<double> out(static_cast<std::size_t>(end - begin) * outputs);
    if (end > begin) run([&](Monitor& monitor) { passes_->values(ids, w.data(), begin, end, out.data(), monitor); });
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
  void check_rows(const Rows& x, const Rows& z) const {
    if (x.size != passes_->size()) throw nb::value_error("the number of rows has changed");
    if (x.width != z.width) throw nb::value_error("rows and vectors differ in width");
  }
  std::size_t checked(const OutputIds& ids, const Matrix& w) const {
    if (w.shape(0) != ids.size() || static_cast<int>(w.shape(1)) != passes_->features() + 1)
      throw nb::value_error("weights must be outputs x (features + 1)");
    for (const int o : ids)
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

// Targets of each row, costs of each output; a row counts as often as `counts` says.
std::unique_ptr<BoundPasses> target_passes(std::shared_ptr<Rows> rows, const Matrix& targets, const Array& counts, const Vector& cost, bool single,
                                           std::size_t keep, int threads) {
  const std::size_t n = static_cast<std::size_t>(rows->size), outputs = targets.shape(1);
  if (targets.shape(0) != n || counts.ndim() != 1 || counts.shape(0) != n) throw nb::value_error("targets and counts must be there for each row");
  if (cost.shape(0) != outputs) throw nb::value_error("cost must have a value for each output");
  if (counts.dtype() != nb::dtype<double>()) throw nb::type_error("expected counts of type float64");
  Labels labels;
  labels.sides = targets.data();
  labels.counts = numbers<double>(counts);
  labels.count_step = counts.stride(0);
  labels.outputs = static_cast<int>(outputs);
  labels.cost.assign(cost.data(), cost.data() + outputs);
  return std::make_unique<BoundPasses>(std::move(rows), std::move(labels), std::vector<Array>{Array(targets), counts}, single, keep, threads);
}

}  // namespace

void bind_passes(nb::module_& m) {
  nb::class_<QuadraticLoss>(m, "QuadraticLoss", "A piecewise quadratic loss of labels, or of targets.")
      .def(
          "__init__",
          [](QuadraticLoss* loss, double width, double least, double most, double tube, bool targets) {
            new (loss) QuadraticLoss{width, least, most, tube, targets};
          },
          "width"_a, "least"_a, "most"_a, "tube"_a = 0.0, "targets"_a = false);
  nb::class_<BoundPasses>(m, "Passes", "Sums over rows for models over few vectors.")
      .def("set_features", &BoundPasses::set_features, "rows"_a, "kernel"_a, "vectors"_a, "T"_a)
      .def("equations", &BoundPasses::equations, "outputs"_a, "w"_a, "loss"_a)
      .def("newton", &BoundPasses::newton, "outputs"_a, "start"_a, "bias_curvature"_a, "loss"_a, "tol"_a, "max_steps"_a)
      .def("line", &BoundPasses::line, "outputs"_a, "w"_a, "step"_a, "t"_a, "loss"_a)
      .def("use_threads", &BoundPasses::use_threads, "threads"_a)
      .def("set_whitened_features", &BoundPasses::set_whitened_features, "rows"_a, "kernel"_a, "vectors"_a, "epsilon"_a, "jitter"_a)
      .def("pullback", &BoundPasses::pullback, "outputs"_a, "w"_a, "beta"_a, "loss"_a, "scales"_a = true)
      .def("certificate", &BoundPasses::certificate, "outputs"_a, "w"_a, "loss"_a, "known"_a, "reach"_a, "units"_a)
      .def("values", &BoundPasses::values, "outputs"_a, "w"_a, "begin"_a, "end"_a)
      .def("features", &BoundPasses::features, "rows"_a);
  m.def("class_passes", &class_passes, "rows"_a, "codes"_a, "counts"_a, "side"_a, "cost"_a, "single"_a, "keep"_a, "threads"_a = 1);
  m.def("row_passes", &row_passes, "rows"_a, "sides"_a, "costs"_a, "single"_a, "keep"_a, "threads"_a = 1);
  m.def("target_passes", &target_passes, "rows"_a, "targets"_a, "counts"_a, "cost"_a, "single"_a, "keep"_a, "threads"_a = 1);
  m.def("smooth_newton", &solve_smooth, "features"_a, "y"_a, "c"_a, "start"_a, "loss"_a, "tol"_a, "max_steps"_a);
}

}  // namespace slimsvm
