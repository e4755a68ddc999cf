// Where the quadratic model of L-BFGS is lowest within bounds (Byrd, Lu, Nocedal and Zhu, SIAM J. Sci. Comput. 16, 1995).
//
// The model's matrix is theta I - W M W', with W = (Y, theta S) from the pairs of steps and changes of the gradient, and M the
// inverse of (-D, L'; L, theta S'S), where D and L are the diagonal of S'Y and what is below it.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "linalg/factors.hpp"
#include "linalg/vectors.hpp"

namespace slimsvm {

// A step, how it changed the gradient, s'y and y'y / s'y.
struct Pair {
  std::vector<double> s, y;
  double product, theta;
};

// Products of all pairs with each other.
class PairProducts {
 public:
  double ss(std::size_t i, std::size_t j) const { return ss_[i][j]; }
  double sy(std::size_t i, std::size_t j) const { return sy_[i][j]; }
  double yy(std::size_t i, std::size_t j) const { return yy_[i][j]; }
  void drop_first() {
    for (Table* table : {&ss_, &sy_, &yy_})
      if (!table->empty()) {
        table->erase(table->begin());
        for (auto& row : *table) row.erase(row.begin());
      }
  }
  void add_last(const std::vector<Pair>& pairs) {
    const std::size_t last = pairs.size() - 1;
    for (Table* table : {&ss_, &sy_, &yy_}) {
      table->resize(last + 1);
      for (auto& row : *table) row.resize(last + 1);
    }
    for (std::size_t k = 0; k <= last; ++k) {
      ss_[last][k] = ss_[k][last] = dot(pairs[last].s, pairs[k].s);
      yy_[last][k] = yy_[k][last] = dot(pairs[last].y, pairs[k].y);
      sy_[last][k] = dot(pairs[last].s, pairs[k].y);
      sy_[k][last] = dot(pairs[k].s, pairs[last].y);
    }
  }

 private:
  using Table = std::vector<std::vector<double>>;
  Table ss_, sy_, yy_;
};

class BoundedModel {
 public:
  using Numbers = std::vector<double>;

  BoundedModel(const Numbers& x, const Numbers& gradient, const Numbers& lower, const Numbers& upper, const std::vector<Pair>& pairs,
               const PairProducts& products)
      : x_(x), g_(gradient), lower_(lower), upper_(upper), pairs_(pairs), products_(products), theta_(pairs.empty() ? 1.0 : pairs.back().theta) {
    invert_middle();
  }

  // From the lowest point along the bent way downhill, on in the variables that are free there.
  Numbers lowest() {
    cauchy();
    if (pairs_.empty()) return goal_;
    const Numbers step = newton();
    Numbers found = goal_;
    double slope = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      found[i] = std::min(std::max(goal_[i] + step[i], lower_[i]), upper_[i]);
      slope += (found[i] - x_[i]) * g_[i];
    }
    if (slope < 0) return found;
    double share = 1;  // bent, it leads upward: as far as the first bound
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (step[i] > 0) share = std::min(share, (upper_[i] - goal_[i]) / step[i]);
      if (step[i] < 0) share = std::min(share, (lower_[i] - goal_[i]) / step[i]);
    }
    for (std::size_t i = 0; i < found.size(); ++i) found[i] = std::min(std::max(goal_[i] + share * step[i], lower_[i]), upper_[i]);
    return found;
  }

 private:
  std::size_t size() const { return x_.size(); }
  std::size_t rank() const { return 2 * pairs_.size(); }

  void invert_middle() {
    const std::size_t k = pairs_.size(), n = 2 * k;
    Numbers middle(n * n, 0.0);
    for (std::size_t i = 0; i < k; ++i) {
      middle[i * n + i] = -pairs_[i].product;
      for (std::size_t j = 0; j < k; ++j) {
        middle[(k + i) * n + k + j] = theta_ * products_.ss(i, j);
        if (j < i) middle[(k + i) * n + j] = middle[j * n + k + i] = products_.sy(i, j);
      }
    }
    inverse_.assign(n * n, 0.0);
    for (std::size_t i = 0; i < n; ++i) inverse_[i * n + i] = 1;
    solve(middle, inverse_, n);
  }
  // right = matrix^-1 right, row by row.
  void solve(Numbers& matrix, Numbers& right, std::size_t columns) const {
    const Index n = static_cast<Index>(rank()), width = static_cast<Index>(columns);
    if (n == 0) return;
    ThreadPool alone(1);
    Monitor monitor;
    LinAlgContext context{alone, monitor};
    std::vector<Index> order;
    const Square factors{matrix.data(), n, n, n, 1};
    factorize_general(factors, order, context);
    Numbers sorted(right.size());
    for (Index i = 0; i < n; ++i) std::copy_n(right.data() + order[i] * width, width, sorted.data() + i * width);
    for (const Triangle kind : {Triangle::unit_lower, Triangle::upper}) solve_triangle(factors, {sorted.data(), n, width, width, 1}, kind, context);
    right = std::move(sorted);
  }
  Numbers middle_times(const Numbers& v) const {
    const std::size_t n = rank();
    Numbers out(n, 0.0);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) out[i] += inverse_[i * n + j] * v[j];
    return out;
  }
  static double small_dot(const Numbers& a, const Numbers& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
  }
  // W'v, a row of W, and v += factor W u.
  Numbers across(const Numbers& v) const {
    Numbers out;
    for (const Pair& pair : pairs_) out.push_back(dot(pair.y, v));
    for (const Pair& pair : pairs_) out.push_back(theta_ * dot(pair.s, v));
    return out;
  }
  Numbers row(std::size_t i) const {
    Numbers out;
    for (const Pair& pair : pairs_) out.push_back(pair.y[i]);
    for (const Pair& pair : pairs_) out.push_back(theta_ * pair.s[i]);
    return out;
  }
  void add_along(double factor, const Numbers& u, Numbers& v) const {
    for (std::size_t k = 0; k < pairs_.size(); ++k) {
      add(factor * u[k], pairs_[k].y, v);
      add(factor * theta_ * u[pairs_.size() + k], pairs_[k].s, v);
    }
  }

  // goal = the first minimum of the model along x - t g, each variable stopping at its bound; `change` = W'(goal - x).
  void cauchy() {
    const std::size_t n = size();
    Numbers way(n), ends(n);
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < n; ++i) {
      ends[i] = g_[i] < 0 ? (x_[i] - upper_[i]) / g_[i] : g_[i] > 0 ? (x_[i] - lower_[i]) / g_[i] : std::numeric_limits<double>::infinity();
      way[i] = ends[i] > 0 ? -g_[i] : 0.0;
      if (ends[i] > 0 && ends[i] < std::numeric_limits<double>::infinity()) order.push_back(i);
    }
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return ends[a] < ends[b] || (ends[a] == ends[b] && a < b); });
    free_.assign(n, 1);
    for (std::size_t i = 0; i < n; ++i) free_[i] = ends[i] > 0;
    goal_ = x_;
    change_.assign(rank(), 0.0);
    Numbers p = across(way);
    double slope = -dot(way, way), bend = -theta_ * slope - small_dot(p, middle_times(p)), t = 0;
    const double least = std::numeric_limits<double>::epsilon() * bend;
    for (const std::size_t b : order) {
      const double ahead = ends[b] - t;
      if (!(slope < 0) || -slope / bend < ahead) break;
      t = ends[b];
      goal_[b] = g_[b] > 0 ? lower_[b] : upper_[b];
      free_[b] = 0, way[b] = 0;
      for (std::size_t k = 0; k < rank(); ++k) change_[k] += ahead * p[k];
      const Numbers w = row(b), bent = middle_times(w);
      const double g = g_[b];
      slope += ahead * bend + g * g + theta_ * g * (goal_[b] - x_[b]) - g * small_dot(bent, change_);
      bend = std::max(bend - theta_ * g * g - 2 * g * small_dot(bent, p) - g * g * small_dot(bent, w), least);
      for (std::size_t k = 0; k < rank(); ++k) p[k] += g * w[k];
    }
    const double ahead = slope < 0 ? -slope / bend : 0.0;
    if (!(ahead > 0) || !std::isfinite(ahead)) {
      for (std::size_t i = 0; i < n; ++i)
        if (free_[i]) goal_[i] = x_[i] + t * way[i];
      return;
    }
    for (std::size_t i = 0; i < n; ++i)
      if (free_[i]) goal_[i] = std::min(std::max(x_[i] + (t + ahead) * way[i], lower_[i]), upper_[i]);
    for (std::size_t k = 0; k < rank(); ++k) change_[k] += ahead * p[k];
  }

  // From goal to where the model is lowest in the free variables.
  Numbers newton() {
    const std::size_t n = rank(), k = pairs_.size();
    Numbers rest = g_;
    for (std::size_t i = 0; i < size(); ++i) rest[i] += theta_ * (goal_[i] - x_[i]);
    add_along(-1, middle_times(change_), rest);
    for (std::size_t i = 0; i < size(); ++i)
      if (!free_[i]) rest[i] = 0;
    Numbers small = middle_times(across(rest)), squares(n * n), matrix(n * n, 0.0);
    for (std::size_t i = 0; i < k; ++i)
      for (std::size_t j = 0; j < k; ++j) {
        squares[i * n + j] = products_.yy(i, j);
        squares[i * n + k + j] = squares[(k + j) * n + i] = theta_ * products_.sy(j, i);
        squares[(k + i) * n + k + j] = theta_ * theta_ * products_.ss(i, j);
      }
    for (std::size_t i = 0; i < size(); ++i) {
      if (free_[i]) continue;
      const Numbers w = row(i);
      for (std::size_t a = 0; a < n; ++a)
        for (std::size_t b = 0; b < n; ++b) squares[a * n + b] -= w[a] * w[b];
    }
    for (std::size_t a = 0; a < n; ++a) {
      for (std::size_t c = 0; c < n; ++c)
        for (std::size_t b = 0; b < n; ++b) matrix[a * n + b] -= inverse_[a * n + c] * squares[c * n + b] / theta_;
      matrix[a * n + a] += 1;
    }
    solve(matrix, small, 1);
    Numbers step(size());
    for (std::size_t i = 0; i < size(); ++i) step[i] = -rest[i] / theta_;
    add_along(-1 / (theta_ * theta_), small, step);
    for (std::size_t i = 0; i < size(); ++i)
      if (!free_[i]) step[i] = 0;
    return step;
  }

  const Numbers &x_, &g_, &lower_, &upper_;
  const std::vector<Pair>& pairs_;
  const PairProducts& products_;
  double theta_;
  Numbers inverse_, goal_, change_;
  std::vector<char> free_;
};

}  // namespace slimsvm
