// Factors of matrices of up to a few thousand rows, block by block: most of the work is products.
#pragma once

#include <algorithm>
#include <vector>

#include "linalg/products.hpp"

namespace slimsvm {

using Square = MatrixView<double>;  // rows in one piece: column == 1

// What factors are computed with: threads, interrupts, and room for a block.
struct LinAlgContext {
  ThreadPool& pool;
  Monitor& monitor;
  std::vector<double> block{};

  // The numbers of a part, without gaps.
  double* copied(const Square& from) {
    block.resize(static_cast<std::size_t>(from.rows * from.columns));
    for (Index i = 0; i < from.rows; ++i) std::copy_n(&from(i, 0), from.columns, block.data() + i * from.columns);
    return block.data();
  }
  void back(const Square& to) const {
    for (Index i = 0; i < to.rows; ++i) std::copy_n(block.data() + i * to.columns, to.columns, &to(i, 0));
  }
  void multiply(const Square& a, const Square& b, const Square& out, Store how, bool lower = false) {
    slimsvm::multiply<double>(a.fixed(), b.fixed(), out, how, pool, monitor, lower);
  }
};

// The inverse of a lower triangle, in place; there are zeros above it.
void invert_lower(const Square& l, LinAlgContext& context);

// The Cholesky factor in the lower triangle, in place; above it there is anything. False if m is not positive definite.
bool factorize(const Square& m, LinAlgContext& context);

// Rows of a factor, a ~ g'g, while what is left of the diagonal is above `least` somewhere: the largest is the next pivot.
// Column pivots[k] of g is zero from row k + 1 on.
std::vector<Index> factorize_pivoted(const Square& a, const Square& g, double least, LinAlgContext& context);

enum class Triangle { lower, lower_transposed, unit_lower, upper };

// x = t^-1 x for one triangle of t; the rest of t does not count.
void solve_triangle(const Square& t, const Square& x, Triangle kind, LinAlgContext& context);

// Factors of a matrix with its rows exchanged, in place: ones and the lower triangle times the upper one. `order[i]`: where row
// i was. False if a pivot is zero: the matrix is singular, and the factors are its own nevertheless.
bool factorize_general(const Square& m, std::vector<Index>& order, LinAlgContext& context);

}  // namespace slimsvm
