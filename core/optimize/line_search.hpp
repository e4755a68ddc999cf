// A step along a line to where the function is low enough and flat enough (More and Thuente, ACM TOMS 20, 1994).
//
// The interval that holds such a step shrinks around the best step so far; trials come from cubic and quadratic models
// of what is known at its ends.
#pragma once

#include <algorithm>
#include <cmath>

namespace slimsvm {

class LineSearch {
 public:
  static constexpr double lower_enough = 1e-3, flat_enough = 0.9, narrow_enough = 0.1;

  // From a value and a negative slope at 0, the first trial, and the longest step.
  void start(double value, double slope, double first, double longest) {
    best_ = other_ = {0, value, slope};
    begin_ = best_;
    trial_ = first;
    longest_ = longest;
    bracketed_ = rising_seen_ = false;
    width_ = longest, width_before_ = 2 * longest;
    least_ = 0, most_ = 5 * first;
  }
  double trial() const { return trial_; }

  // What was found at the trial. True: take it. Else there is another trial.
  bool enough(double value, double slope) {
    const double wanted = lower_enough * begin_.slope, line = begin_.value + trial_ * wanted;
    rising_seen_ = rising_seen_ || (value <= line && slope >= 0);
    const bool stuck = bracketed_ && (trial_ <= least_ || trial_ >= most_ || most_ - least_ <= narrow_enough * most_);
    const bool at_end = (trial_ == longest_ && value <= line && slope <= wanted) || (trial_ == 0 && (value > line || slope >= wanted));
    if (stuck || at_end || (value <= line && std::fabs(slope) <= -flat_enough * begin_.slope)) return true;
    if (!rising_seen_ && value <= best_.value && value > line) {
      // Before the function has been low enough, what counts is how far it is above the line.
      const auto above = [&](Trial p) { return Trial{p.at, p.value - p.at * wanted, p.slope - wanted}; };
      best_ = above(best_), other_ = above(other_);
      move(above({trial_, value, slope}));
      const auto whole = [&](Trial p) { return Trial{p.at, p.value + p.at * wanted, p.slope + wanted}; };
      best_ = whole(best_), other_ = whole(other_);
    } else {
      move({trial_, value, slope});
    }
    if (bracketed_) {
      if (std::fabs(other_.at - best_.at) >= 0.66 * width_before_) trial_ = best_.at + 0.5 * (other_.at - best_.at);
      width_before_ = width_;
      width_ = std::fabs(other_.at - best_.at);
      least_ = std::min(best_.at, other_.at), most_ = std::max(best_.at, other_.at);
    } else {
      least_ = trial_ + 1.1 * (trial_ - best_.at), most_ = trial_ + 4 * (trial_ - best_.at);
    }
    trial_ = std::clamp(trial_, 0.0, longest_);
    if (bracketed_ && (trial_ <= least_ || trial_ >= most_ || most_ - least_ <= narrow_enough * most_)) trial_ = best_.at;
    return false;
  }

 private:
  struct Trial {
    double at, value, slope;
  };

  // The minimum of the cubic through two points and their slopes, as a share of the way from `from` to `to`.
  static double cubic(const Trial& from, const Trial& to, double theta, double root) {
    return ((root - from.slope) + theta) / (((root - from.slope) + root) + to.slope);
  }
  static double theta_of(const Trial& a, const Trial& b) { return 3 * (a.value - b.value) / (b.at - a.at) + a.slope + b.slope; }
  static double root_of(const Trial& a, const Trial& b, double theta) {
    const double size = std::max({std::fabs(theta), std::fabs(a.slope), std::fabs(b.slope)});
    return size * std::sqrt(std::max(0.0, (theta / size) * (theta / size) - (a.slope / size) * (b.slope / size)));
  }

  // The next trial from the current one, and the interval around it.
  void move(const Trial& now) {
    const bool turned = now.slope * (best_.slope / std::fabs(best_.slope)) < 0;
    const double way = now.at - best_.at;
    double next;
    if (now.value > best_.value) {  // too far: between the two
      const double theta = theta_of(best_, now), root = std::copysign(root_of(best_, now, theta), way);
      const double by_cubic = best_.at + cubic(best_, now, theta, root) * way;
      const double by_square = best_.at + best_.slope / ((best_.value - now.value) / way + best_.slope) / 2 * way;
      next = std::fabs(by_cubic - best_.at) < std::fabs(by_square - best_.at) ? by_cubic : by_cubic + (by_square - by_cubic) / 2;
      bracketed_ = true;
    } else if (turned) {  // slopes point at each other
      const double theta = theta_of(best_, now), root = std::copysign(root_of(best_, now, theta), -way);
      const double by_cubic = now.at - cubic(now, best_, theta, root) * way;
      const double by_secant = now.at - now.slope / (now.slope - best_.slope) * way;
      next = std::fabs(by_cubic - now.at) > std::fabs(by_secant - now.at) ? by_cubic : by_secant;
      bracketed_ = true;
    } else if (std::fabs(now.slope) < std::fabs(best_.slope)) {  // flatter: beyond
      const double theta = theta_of(best_, now), root = std::copysign(root_of(best_, now, theta), -way);
      const double share = ((root - now.slope) + theta) / ((root + (best_.slope - now.slope)) + root);
      const double by_cubic = share < 0 && root != 0 ? now.at - share * way : way > 0 ? most_ : least_;
      const double by_secant = now.at - now.slope / (now.slope - best_.slope) * way;
      const bool cubic_is_near = std::fabs(by_cubic - now.at) < std::fabs(by_secant - now.at);
      if (bracketed_) {
        next = cubic_is_near ? by_cubic : by_secant;
        const double far = now.at + 0.66 * (other_.at - now.at);
        next = way > 0 ? std::min(far, next) : std::max(far, next);
      } else {
        next = std::fabs(by_cubic - now.at) > std::fabs(by_secant - now.at) ? by_cubic : by_secant;
        next = std::max(least_, std::min(most_, next));
      }
    } else if (bracketed_) {  // steeper: towards the other end
      const double theta = theta_of(other_, now), root = std::copysign(root_of(other_, now, theta), other_.at - now.at);
      next = now.at + cubic(now, other_, theta, root) * (other_.at - now.at);
    } else {
      next = way > 0 ? most_ : least_;
    }
    if (now.value > best_.value) {
      other_ = now;
    } else {
      if (turned) other_ = best_;
      best_ = now;
    }
    trial_ = next;
  }

  Trial begin_{}, best_{}, other_{};
  double trial_ = 0, longest_ = 0, least_ = 0, most_ = 0, width_ = 0, width_before_ = 0;
  bool bracketed_ = false, rising_seen_ = false;
};

}  // namespace slimsvm
