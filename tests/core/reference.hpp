// Kernels as their formulas say, one number at a time.
#pragma once

#include <cmath>
#include <string>
#include <variant>
#include <vector>

#include "kernels/kernels.hpp"

namespace tests {

struct Reference {
  const double *x, *z;
  slimsvm::Index width;

  double dot() const {
    double sum = 0;
    for (slimsvm::Index k = 0; k < width; ++k) sum += x[k] * z[k];
    return sum;
  }
  double operator()(const slimsvm::Linear&) const { return dot(); }
  double operator()(const slimsvm::Gaussian& k) const {
    double sum = 0;
    for (slimsvm::Index j = 0; j < width; ++j) sum += (x[j] - z[j]) * (x[j] - z[j]);
    return std::exp(-k.gamma * sum);
  }
  double operator()(const slimsvm::Laplacian& k) const {
    double sum = 0;
    for (slimsvm::Index j = 0; j < width; ++j) sum += std::fabs(x[j] - z[j]);
    return std::exp(-k.gamma * sum);
  }
  double operator()(const slimsvm::Polynomial& k) const { return std::pow(k.gamma * dot() + k.coef0, k.degree); }
  double operator()(const slimsvm::Sigmoid& k) const { return std::tanh(k.gamma * dot() + k.coef0); }
};

inline double value(const slimsvm::AnyKernel& kernel, const double* x, const double* z, slimsvm::Index width) {
  return std::visit(Reference{x, z, width}, kernel);
}

struct Case {
  const char* name;
  slimsvm::AnyKernel kernel;
};

// Parameters that float holds exactly.
inline std::vector<Case> every_kernel() {
  using namespace slimsvm;
  return {{"linear", Linear{}},
          {"gaussian", Gaussian{0.5}},
          {"gaussian, narrow", Gaussian{64.0}},
          {"laplacian", Laplacian{0.25}},
          {"polynomial", Polynomial{0.5, 1.0, 3}},
          {"sigmoid", Sigmoid{0.25, -0.5}}};
}

}  // namespace tests
