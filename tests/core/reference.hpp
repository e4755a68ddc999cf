// The kernels as their formulas say: one table for all tests.
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "kernels/kernels.hpp"

namespace tests {

struct KernelCase {
  std::string name;
  slimsvm::AnyKernel kernel;
  std::function<double(const double* x, const double* z, slimsvm::Index width)> value;
};

template <class Term>
double sum_of(const double* x, const double* z, slimsvm::Index width, Term term) {
  double sum = 0;
  for (slimsvm::Index k = 0; k < width; ++k) sum += term(x[k], z[k]);
  return sum;
}
inline double dot(const double* x, const double* z, slimsvm::Index width) {
  return sum_of(x, z, width, [](double a, double b) { return a * b; });
}
inline double squared_distance(const double* x, const double* z, slimsvm::Index width) {
  return sum_of(x, z, width, [](double a, double b) { return (a - b) * (a - b); });
}
inline double taxicab_distance(const double* x, const double* z, slimsvm::Index width) {
  return sum_of(x, z, width, [](double a, double b) { return std::fabs(a - b); });
}

// A kernel and its function of one of these numbers.
template <class Form, class Function>
KernelCase kernel_case(const char* name, slimsvm::AnyKernel kernel, Form form, Function function) {
  return {name, kernel, [=](const double* x, const double* z, slimsvm::Index width) { return function(form(x, z, width)); }};
}

inline KernelCase linear_case() {
  return kernel_case("linear", slimsvm::linear(), dot, [](double s) { return s; });
}
inline KernelCase gaussian_case(double gamma) {
  return kernel_case("gaussian", slimsvm::gaussian(gamma), squared_distance, [=](double s) { return std::exp(-gamma * s); });
}
inline KernelCase laplacian_case(double gamma) {
  return kernel_case("laplacian", slimsvm::laplacian(gamma), taxicab_distance, [=](double s) { return std::exp(-gamma * s); });
}
inline KernelCase polynomial_case(double gamma, double coef0, int degree) {
  return kernel_case("polynomial", slimsvm::polynomial(gamma, coef0, degree), dot, [=](double s) { return std::pow(gamma * s + coef0, degree); });
}
inline KernelCase sigmoid_case(double gamma, double coef0) {
  return kernel_case("sigmoid", slimsvm::sigmoid(gamma, coef0), dot, [=](double s) { return std::tanh(gamma * s + coef0); });
}

// Every kernel, with parameters that float holds exactly: some with little strain (see kernels/forms.hpp), some with much.
inline std::vector<KernelCase> every_kernel() {
  return {linear_case(),        gaussian_case(0.5),           gaussian_case(64.0),          laplacian_case(0.25),
          laplacian_case(16.0), polynomial_case(0.5, 1.0, 3), polynomial_case(0.25, 0.5, 1), sigmoid_case(0.25, -0.5)};
}

}  // namespace tests
