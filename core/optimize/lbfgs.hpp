// L-BFGS with bounds on single variables: the caller evaluates the function, here are the steps.
//
// Without a bound in reach the iterates are those of L-BFGS-B (Byrd, Lu, Nocedal and Zhu, 1995; Zhu et al., 1997): the same
// memory, first steps, line search and tests. With bounds, bounded_model.hpp says where a step leads.
#pragma once

#include <limits>
#include <vector>

#include "optimize/bounded_model.hpp"
#include "optimize/line_search.hpp"

namespace slimsvm {

class Lbfgs {
 public:
  using Numbers = std::vector<double>;
  enum class Request { evaluate, iterate, converged, stuck };  // value and gradient at x; the caller may look at a new iterate; the end, or no descent
  static constexpr int most_trials = 20;

  // Bounds may be empty, or infinite.
  Lbfgs(Numbers start, int memory, Numbers lower, Numbers upper, double reduction, double flatness)
      : x_(std::move(start)), lower_(std::move(lower)), upper_(std::move(upper)), memory_(memory), reduction_(reduction), flatness_(flatness) {
    clip(x_);
  }

  const Numbers& x() const { return x_; }
  double value() const { return value_; }
  bool has_value() const { return !gradient_.empty() || x_.empty(); }

  // Value and gradient at x.
  Request update(double value, const double* gradient) {
    const bool first = gradient_.empty();
    value_ = value;
    gradient_.assign(gradient, gradient + size());
    if (first) return outward() <= flatness_ ? Request::converged : begin();
    const double slope = dot(gradient_, direction_);
    if (!search_.enough(value, slope)) {
      if (++trials_ < most_trials) return look_at_trial();
      return again();
    }
    slope_ = slope;
    ++iterations_;
    return Request::iterate;
  }

  // On from a new iterate.
  Request advance() {
    if (outward() <= flatness_) return Request::converged;
    if (value_before_ - value_ <= reduction_ * std::max({std::fabs(value_before_), std::fabs(value_), 1.0})) return Request::converged;
    remember();
    return begin();
  }

  // The largest change that a step along the gradient could make within the bounds.
  double outward() const {
    double most = 0;
    for (Index i = 0; i < size(); ++i) {
      double g = gradient_[i];
      if (bounded()) g = g < 0 ? std::max(x_[i] - upper_[i], g) : std::min(x_[i] - lower_[i], g);
      if (!(std::fabs(g) <= most)) most = std::fabs(g);
    }
    return most;
  }

 private:
  Index size() const { return static_cast<Index>(x_.size()); }
  bool bounded() const { return !lower_.empty(); }
  bool boxed() const {  // on both sides, all of them
    for (std::size_t i = 0; i < lower_.size(); ++i)
      if (!std::isfinite(lower_[i]) || !std::isfinite(upper_[i])) return false;
    return bounded();
  }
  void clip(Numbers& x) const {
    if (bounded())
      for (Index i = 0; i < size(); ++i) x[i] = std::min(std::max(x[i], lower_[i]), upper_[i]);
  }

  // A new direction, and the first trial along it.
  Request begin() {
    direct();
    const double steepness = dot(gradient_, direction_), length = std::sqrt(dot(direction_, direction_));
    if (!(steepness < 0)) return retry();
    x_before_ = x_, gradient_before_ = gradient_, value_before_ = value_, slope_before_ = steepness;
    const double longest = room(), first = iterations_ == 0 && !boxed() ? 1 / length : 1.0;
    search_.start(value_, steepness, std::min(first, longest), longest);
    trials_ = 0;
    return look_at_trial();
  }
  Request look_at_trial() {
    if (search_.trial() == 1) {
      x_ = goal_;
    } else {
      x_ = x_before_;
      add(search_.trial(), direction_, x_);
      clip(x_);
    }
    return Request::evaluate;
  }
  // The line search found nothing: back to where it began.
  Request again() {
    x_ = x_before_, gradient_ = gradient_before_, value_ = value_before_;
    return retry();
  }
  // Without the memory, which may be what misled.
  Request retry() {
    if (pairs_.empty()) return Request::stuck;
    pairs_.clear();
    pair_products_ = PairProducts();
    return begin();
  }

  void remember() {
    const double step = search_.trial();
    const double product = (slope_ - slope_before_) * step, least = -slope_before_ * step;
    if (product <= std::numeric_limits<double>::epsilon() * least) return;
    Pair pair;
    if (static_cast<int>(pairs_.size()) == memory_) {
      pair = std::move(pairs_.front());
      pairs_.erase(pairs_.begin());
      pair_products_.drop_first();
    }
    pair.s = direction_;
    for (double& s : pair.s) s *= step;
    pair.y = gradient_;
    add(-1, gradient_before_, pair.y);
    pair.product = product;
    pair.theta = dot(pair.y, pair.y) / product;
    pairs_.push_back(std::move(pair));
    if (bounded()) pair_products_.add_last(pairs_);
  }

  // goal and direction: where the model is lowest, within the bounds.
  void direct() {
    if (bounded()) {
      goal_ = BoundedModel(x_, gradient_, lower_, upper_, pairs_, pair_products_).lowest();
      direction_ = goal_;
      add(-1, x_, direction_);
      return;
    }
    direction_ = gradient_;
    downhill();
    goal_ = x_;
    add(1, direction_, goal_);
  }

  // direction = - H direction, from the pairs (Nocedal's two loops).
  void downhill() {
    const std::vector<Pair>& pairs = pairs_;
    Numbers share(pairs.size());
    for (std::size_t k = pairs.size(); k-- > 0;) {
      share[k] = dot(pairs[k].s, direction_) / pairs[k].product;
      add(-share[k], pairs[k].y, direction_);
    }
    const double scale = pairs.empty() ? 1.0 : 1 / pairs.back().theta;
    for (double& d : direction_) d *= -scale;
    for (std::size_t k = 0; k < pairs.size(); ++k) {
      const double other = dot(pairs[k].y, direction_) / pairs[k].product;
      add(-(share[k] + other), pairs[k].s, direction_);
    }
  }

  // The longest step along the direction.
  double room() const {
    double most = 1e10;
    if (!bounded()) return most;
    if (iterations_ == 0) return 1;
    for (Index i = 0; i < size(); ++i) {
      const double d = direction_[i];
      if (d < 0) most = std::min(most, std::max(0.0, (lower_[i] - x_[i]) / d));
      if (d > 0) most = std::min(most, std::max(0.0, (upper_[i] - x_[i]) / d));
    }
    return most;
  }

  Numbers x_, lower_, upper_, gradient_, direction_, goal_, x_before_, gradient_before_;
  int memory_, trials_ = 0;
  double reduction_, flatness_;
  Index iterations_ = 0;
  double value_ = 0, value_before_ = 0, slope_ = 0, slope_before_ = 0;
  std::vector<Pair> pairs_;
  PairProducts pair_products_;
  LineSearch search_;
};

}  // namespace slimsvm
