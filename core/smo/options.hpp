// How a problem is solved.
#pragma once

#include "cpu/buffer.hpp"

namespace slimsvm {

constexpr Index double_below = 768;   // problems of at most this size are one block, in double throughout
constexpr Index smallest_block = 16;  // rows that a fit needs at once, whatever the cache
constexpr Index slice = 2000;         // pair steps before another way is tried

struct Options {
  double tolerance = 1e-3;  // on the relative duality gap, and on the violation of the optimality conditions
  Index max_steps = -1;     // pair steps; negative: no limit
  int block = 512;
  double keep = 0.75;  // share of the working set that stays for the next round
  bool exact = true;   // false: the gradient as tracked will do, for a problem that is one step of many
  int thread = 0;      // of the pool: the one that solves
};

}  // namespace slimsvm
