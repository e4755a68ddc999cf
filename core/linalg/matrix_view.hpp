// Matrices where they lie.
#pragma once

#include "cpu/buffer.hpp"

namespace slimsvm {

// A matrix where it lies: number (i, j) is data[i * row + j * column].
template <class T>
struct MatrixView {
  T* data;
  Index rows, columns;
  std::ptrdiff_t row, column;

  T& operator()(Index i, Index j) const { return data[i * row + j * column]; }
  MatrixView transposed() const { return {data, columns, rows, column, row}; }
  MatrixView part(Index i, Index j, Index height, Index width) const { return {data + i * row + j * column, height, width, row, column}; }
  MatrixView<const T> fixed() const { return {data, rows, columns, row, column}; }
};

enum class Store { set, add, subtract };  // what becomes of a product

namespace linear {
inline Index up(Index n, Index unit) { return (n + unit - 1) / unit * unit; }
}  // namespace linear

}  // namespace slimsvm
