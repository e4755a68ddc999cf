// A number made from a row's contents: the same for equal rows, however they are stored.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "cpu/threads.hpp"
#include "rows/rows.hpp"

namespace slimsvm {

// 0 stays 0.
SLIM_INLINE std::uint64_t mixed(std::uint64_t bits) {
  bits ^= bits >> 29;
  bits *= 0xBF58476D1CE4E5B9u;
  return bits ^ (bits >> 32);
}

// sum_k mixed(bits of x_k) constant_k, modulo 2^64: zeros add nothing, and -0 is 0.
struct KeySum {
  template <class Isa>
  static SLIM_INLINE std::uint64_t run(const double* values, const std::uint64_t* constants, std::size_t count) {
    std::uint64_t sum = 0;
    for (std::size_t k = 0; k < count; ++k) {
      const double value = values[k] + 0.0;
      std::uint64_t bits;
      std::memcpy(&bits, &value, sizeof bits);
      sum += mixed(bits) * constants[k];
    }
    return sum;
  }
};

inline void row_keys(const Rows& x, const std::uint64_t* constants, std::uint64_t* out, ThreadPool& pool, Monitor& monitor) {
  constexpr Index together = 4096;
  const bool sparse = x.density() < 0.5;
  struct KeyScratch {
    std::vector<double> row;
    SparseRow<double> nonzeros;
    std::vector<std::uint64_t> constants;
  };
  std::vector<KeyScratch> local(static_cast<std::size_t>(pool.size()));
  pool.run(
      static_cast<std::size_t>((x.size + together - 1) / together),
      [&](std::size_t task, int thread) {
        KeyScratch& mine = local[static_cast<std::size_t>(thread)];
        const Index begin = static_cast<Index>(task) * together;
        for (Index i = begin; i < std::min(x.size, begin + together); ++i) {
          std::uint64_t sum;
          if (sparse) {
            x.nonzeros(i, mine.nonzeros);
            mine.constants.resize(mine.nonzeros.count);
            for (std::size_t p = 0; p < mine.nonzeros.count; ++p) mine.constants[p] = constants[mine.nonzeros.columns[p]];
            sum = dispatch<KeySum>(static_cast<const double*>(mine.nonzeros.values.data()),
                                     static_cast<const std::uint64_t*>(mine.constants.data()), mine.nonzeros.count);
          } else {
            mine.row.resize(static_cast<std::size_t>(x.width));
            x.copy(i, mine.row.data());
            sum = dispatch<KeySum>(static_cast<const double*>(mine.row.data()), constants, mine.row.size());
          }
          out[i] = mixed(sum);
        }
      },
      monitor);
}

// Rows whose keys begin with these bits, in the order of their keys, equal ones as they come.
inline std::vector<Index> rows_of_part(const std::uint64_t* keys, std::size_t count, int bits, std::uint64_t part) {
  struct KeyedRow {
    std::uint64_t key;
    Index row;
  };
  std::vector<KeyedRow> found;
  found.reserve((count >> bits) + (count >> bits) / 16 + 64);
  for (std::size_t i = 0; i < count; ++i)
    if (bits == 0 || keys[i] >> (64 - bits) == part) found.push_back({keys[i], static_cast<Index>(i)});
  std::sort(found.begin(), found.end(), [](const KeyedRow& a, const KeyedRow& b) { return a.key < b.key || (a.key == b.key && a.row < b.row); });
  std::vector<Index> rows;
  rows.reserve(found.size());
  for (const KeyedRow& place : found) rows.push_back(place.row);
  return rows;
}

}  // namespace slimsvm
