// Features in which a norm of coefficients is the plain one: p = T'k with T'RT = I.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "linalg/cholesky.hpp"

namespace slimsvm {

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
  if (!dispatch<CholeskyFactor>(unit.data(), n)) return false;
  const double least = 10 * n * std::numeric_limits<double>::epsilon();
  for (std::size_t i = 0; i < size; ++i)
    if (!(unit[i * size + i] * unit[i * size + i] > least)) return false;
  dispatch<InvertLower>(unit.data(), n);
  for (std::size_t i = 0; i < size; ++i)
    for (std::size_t j = 0; j < size; ++j) T[i * size + j] = j < i ? 0.0 : scale[i] * unit[j * size + i];
  return true;
}

}  // namespace slimsvm
