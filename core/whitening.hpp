// Features in which a norm of coefficients is the plain one: p = T'k with T'RT = I.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "newton.hpp"

namespace slimsvm {

// The inverse of a lower triangle (n x n, row-major), in place.
struct InvertLower {
  template <class Isa>
  static SLIM_INLINE void run(double* l, int n) {
    std::vector<double> sum(static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i) {
      double* row = l + static_cast<std::size_t>(i) * n;
      std::fill_n(sum.begin(), i, 0.0);
      for (int k = 0; k < i; ++k) {
        const double* other = l + static_cast<std::size_t>(k) * n;
        const double factor = row[k];
        for (int j = 0; j <= k; ++j) sum[j] += factor * other[j];
      }
      const double inverse = 1 / row[i];
      for (int j = 0; j < i; ++j) row[j] = -inverse * sum[j];
      row[i] = inverse;
    }
  }
};

// T (n x n) for R = gram + diag(epsilon + jitter |gram_jj|). False where rounding may be what makes R positive definite.
inline bool inverse_root(const double* gram, int n, double epsilon, double jitter, double* T) {
  const std::size_t size = static_cast<std::size_t>(n);
  std::vector<double> scale(size), unit(size * size);
  for (std::size_t i = 0; i < size; ++i) {
    const double own = gram[i * size + i], diagonal = std::fabs(own + epsilon + jitter * std::fabs(own));
    scale[i] = diagonal > 0 ? 1 / std::sqrt(diagonal) : 1.0;
  }
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t j = 0; j < i; ++j) unit[i * size + j] = gram[i * size + j] * scale[i] * scale[j];
    const double own = gram[i * size + i];
    unit[i * size + i] = (own + epsilon + jitter * std::fabs(own)) * scale[i] * scale[i];
  }
  if (!dispatch<Factorize>(unit.data(), n)) return false;
  const double least = 10 * n * std::numeric_limits<double>::epsilon();
  for (std::size_t i = 0; i < size; ++i)
    if (!(unit[i * size + i] * unit[i * size + i] > least)) return false;
  dispatch<InvertLower>(unit.data(), n);
  for (std::size_t i = 0; i < size; ++i)
    for (std::size_t j = 0; j < size; ++j) T[i * size + j] = j < i ? 0.0 : scale[i] * unit[j * size + i];
  return true;
}

}  // namespace slimsvm
