// Bounds on the rounding of products K a that are updated many times.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/forms.hpp"

namespace slimsvm {

// How far values K a, tracked through rounded rows, are from the true ones. They were exact at `anchor`. A kernel value with a
// relative error is the same whenever its row is computed: then only |a - anchor| counts, not the steps that led there.
struct ErrorBound {
  double uniform = 0;            // of every value
  double relative = 0;           // times `weighted`, of each value
  std::vector<double> weighted;  // sum |a - anchor| k
  std::vector<double> anchor;    // empty: zero

  double at(Index v) const { return weighted.empty() ? uniform : uniform + relative * weighted[v]; }
  double distance(Index v, double a) const { return std::fabs(anchor.empty() ? a : a - anchor[v]); }
  bool known() const { return uniform < std::numeric_limits<double>::infinity(); }
  void forget() { uniform = std::numeric_limits<double>::infinity(); }
  // The values at a are exact.
  void reset(const std::vector<double>& a) {
    uniform = relative = 0;
    weighted.clear();
    anchor = a;
  }
  // Takes in a change x of a, by which the distances to the anchor grow by `farther`. True: the caller is to add the rows times
  // `farther` to `weighted`.
  bool add(const std::vector<double>& x, const std::vector<double>& farther, const Rounding& rounding, Index size) {
    constexpr double negligible = 1e-7;
    if (!known()) return false;  // and it stays so
    double absolute = 0, sum = 0;
    for (const double value : x) absolute += std::fabs(value);
    for (const double value : farther) sum += std::fabs(value);
    uniform += absolute * rounding.absolute;
    if (!(sum * rounding.relative > negligible)) {  // values with a relative error are at most 1
      uniform += sum * rounding.relative;
      return false;
    }
    relative = std::max(relative, rounding.relative);
    if (weighted.empty()) weighted.assign(size, 0.0);
    return true;
  }
};

}  // namespace slimsvm
