// Products and factors for Python: `slimsvm.linear` is what calls them.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "bindings/bindings.hpp"
#include "linalg/factors.hpp"
#include "optimize/lbfgs.hpp"
#include "linalg/orthogonal.hpp"

namespace slimsvm {

using namespace nb::literals;

namespace {

using Writable = nb::ndarray<nb::device::cpu, nb::ndim<2>>;
using Whole = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

constexpr double brief = 1 << 15;     // multiplications that take less time than to let go of the GIL
constexpr double share = 1 << 21;     // that are worth a thread

template <class Real, class A>
auto view_of(const A& a) {
  using T = std::remove_pointer_t<decltype(numbers<Real>(a))>;
  return MatrixView<T>{numbers<Real>(a), static_cast<Index>(a.shape(0)), static_cast<Index>(a.shape(1)), a.stride(0), a.stride(1)};
}

Square square_of(const Whole& a) {
  if (a.shape(0) != a.shape(1)) throw nb::value_error("expected a square matrix");
  return view_of<double>(a);
}

// Work of about so many multiplications, on as many threads as that is worth.
template <class Work>
void run(double size, int threads, Work work) {
  PythonMonitor monitor{nb::object()};
  std::optional<nb::gil_scoped_release> release;
  if (size > brief) release.emplace();
  ThreadPool pool(static_cast<int>(std::clamp(size / share, 1.0, std::max(1.0, static_cast<double>(threads)))));
  work(pool, monitor);
}

template <class Work>
void build(double size, int threads, Work work) {
  run(size, threads, [&](ThreadPool& pool, Monitor& monitor) {
    LinAlgContext context{pool, monitor};
    work(context);
  });
}

void product(const Array& a, const Array& b, const Writable& out, int threads, bool symmetric, bool subtract) {
  if (a.ndim() != 2 || b.ndim() != 2 || a.shape(1) != b.shape(0) || out.shape(0) != a.shape(0) || out.shape(1) != b.shape(1))
    throw nb::value_error("shapes do not fit");
  if (a.dtype() != b.dtype() || a.dtype() != out.dtype()) throw nb::type_error("expected arrays of one type");
  const double size = static_cast<double>(a.shape(0)) * static_cast<double>(a.shape(1)) * static_cast<double>(b.shape(1));
  const auto in = [&](auto tag) {
    using Real = decltype(tag);
    const MatrixView<const Real> left = view_of<Real>(a), right = view_of<Real>(b);
    const MatrixView<Real> to = view_of<Real>(out);
    run(size, threads, [&](ThreadPool& pool, Monitor& monitor) {
      multiply<Real>(left, right, to, subtract ? Store::subtract : Store::set, pool, monitor, symmetric);
      if (!symmetric) return;
      for (Index i = 0; i < to.rows; ++i)
        for (Index j = 0; j < i; ++j) to(j, i) = to(i, j);
    });
  };
  if (a.dtype() == nb::dtype<double>()) return in(double());
  if (a.dtype() == nb::dtype<float>()) return in(float());
  throw nb::type_error("expected float32 or float64");
}

double cube(const Square& m) { return static_cast<double>(m.rows) * static_cast<double>(m.rows) * static_cast<double>(m.rows); }

void clear_above(const Square& a) {
  for (Index i = 0; i < a.rows; ++i) std::fill_n(&a(i, 0) + i + 1, a.rows - i - 1, 0.0);
}

bool cholesky(const Whole& m, int threads) {
  const Square a = square_of(m);
  bool definite = false;
  build(cube(a) / 6, threads, [&](LinAlgContext& context) {
    definite = factorize(a, context);
    if (definite) clear_above(a);
  });
  return definite;
}

void inverse_lower(const Whole& l, int threads) {
  const Square a = square_of(l);
  build(cube(a) / 3, threads, [&](LinAlgContext& context) {
    clear_above(a);
    invert_lower(a, context);
  });
}

// x becomes the solution for each triangle in turn.
void solve_triangles(const Whole& t, const Whole& x, std::vector<int> kinds, int threads) {
  const Square a = square_of(t), to = view_of<double>(x);
  if (to.rows != a.rows) throw nb::value_error("shapes do not fit");
  build(static_cast<double>(a.rows) * static_cast<double>(a.rows) * static_cast<double>(to.columns) / 2, threads, [&](LinAlgContext& context) {
    for (const int kind : kinds) solve_triangle(a, to, static_cast<Triangle>(kind), context);
  });
}

nb::tuple eliminate(const Whole& m, int threads) {
  const Square a = square_of(m);
  std::vector<Index> order;
  bool regular = false;
  build(cube(a) / 3, threads, [&](LinAlgContext& context) { regular = factorize_general(a, order, context); });
  return nb::make_tuple(to_numpy(std::move(order), {m.shape(0)}), regular);
}

nb::ndarray<nb::numpy, Index> pivoted(const Whole& m, const Whole& g, double least) {
  const Square a = square_of(m), to = square_of(g);
  if (a.rows != to.rows) throw nb::value_error("shapes do not fit");
  std::vector<Index> pivots;
  build(cube(a) / 3, 1, [&](LinAlgContext& context) { pivots = factorize_pivoted(a, to, least, context); });
  const std::size_t count = pivots.size();
  return to_numpy(std::move(pivots), {count});
}

void orthogonal(const Whole& m, const Whole& q, int threads) {
  const Square a = view_of<double>(m), to = view_of<double>(q);
  if (to.rows != a.rows || to.columns != std::min(a.rows, a.columns)) throw nb::value_error("shapes do not fit");
  const double size = static_cast<double>(a.rows) * static_cast<double>(a.columns) * static_cast<double>(to.columns);
  build(2 * size, threads, [&](LinAlgContext& context) { orthogonalize(a, to, context); });
}

nb::ndarray<nb::numpy, Index> triangle(const Whole& c) {
  const Square columns = view_of<double>(c);
  if (columns.rows > columns.columns) throw nb::value_error("expected columns that are at least as long as they are many");
  std::vector<Index> order;
  const double size = static_cast<double>(columns.rows) * static_cast<double>(columns.rows) * static_cast<double>(columns.columns);
  run(size, 1, [&](ThreadPool&, Monitor&) { order = triangularize(columns); });
  return to_numpy(std::move(order), {c.shape(0)});
}

std::vector<double> copied(const Vector& values) { return std::vector<double>(values.data(), values.data() + values.shape(0)); }

Lbfgs lbfgs(const Vector& start, int memory, std::optional<Vector> lower, std::optional<Vector> upper, double reduction, double flatness) {
  if (memory < 1) throw nb::value_error("expected to remember one step at least");
  if (lower.has_value() != upper.has_value()) throw nb::value_error("expected both bounds, or none");
  for (const auto& bound : {lower, upper})
    if (bound && bound->shape(0) != start.shape(0)) throw nb::value_error("expected a bound for each variable");
  const std::vector<double> none;
  return Lbfgs(copied(start), memory, lower ? copied(*lower) : none, upper ? copied(*upper) : none, reduction, flatness);
}

int update(Lbfgs& method, double value, const Vector& gradient) {
  if (gradient.shape(0) != method.x().size()) throw nb::value_error("expected a derivative for each variable");
  nb::gil_scoped_release release;
  return static_cast<int>(method.update(value, gradient.data()));
}

int advance(Lbfgs& method) {
  if (!method.has_value()) throw std::runtime_error("no value is known yet");
  nb::gil_scoped_release release;
  return static_cast<int>(method.advance());
}

}  // namespace

void bind_linear(nb::module_& m) {
  m.def("product", &product, "a"_a, "b"_a, "out"_a.noconvert(), "threads"_a = 1, "symmetric"_a = false, "subtract"_a = false);
  m.def("cholesky", &cholesky, "m"_a.noconvert(), "threads"_a = 1);
  m.def("inverse_lower", &inverse_lower, "l"_a.noconvert(), "threads"_a = 1);
  m.def("solve_triangles", &solve_triangles, "t"_a.noconvert(), "x"_a.noconvert(), "kinds"_a, "threads"_a = 1);
  nb::class_<Lbfgs>(m, "Lbfgs", "L-BFGS with bounds, one step after the other.")
      .def(nb::new_(&lbfgs), "start"_a, "memory"_a, "lower"_a.none(), "upper"_a.none(), "reduction"_a, "flatness"_a)
      .def("update", &update, "value"_a, "gradient"_a)
      .def("advance", &advance)
      .def_prop_ro("x", [](const Lbfgs& method) { return to_numpy(std::vector<double>(method.x()), {method.x().size()}); },
                   nb::rv_policy::automatic)
      .def_prop_ro("value", &Lbfgs::value);
  m.def("pivoted_cholesky", &pivoted, "m"_a.noconvert(), "g"_a.noconvert(), "least"_a);
  m.def("orthogonal", &orthogonal, "m"_a.noconvert(), "q"_a.noconvert(), "threads"_a = 1);
  m.def("triangularize", &triangle, "columns"_a.noconvert());
  m.def("eliminate", &eliminate, "m"_a.noconvert(), "threads"_a = 1);
}

}  // namespace slimsvm
