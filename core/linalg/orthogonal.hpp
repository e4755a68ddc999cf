// Orthogonal factors by Householder's reflections.
#pragma once

#include <vector>

#include "linalg/factors.hpp"

namespace slimsvm {

// The triangle r of a = q r with its columns exchanged, always the largest of what is left first. The columns of a are the rows
// of `columns` (n x m, m >= n, numbers of size 1 at most); column k of r becomes the first k + 1 numbers of row k. Their order.
std::vector<Index> triangularize(const Square& columns);

// a (m x n) = q r for q of min(m, n) orthonormal columns; r takes the place of the first rows of a, zeros below.
void orthogonalize(const Square& a, const Square& q, LinAlgContext& context);

}  // namespace slimsvm
