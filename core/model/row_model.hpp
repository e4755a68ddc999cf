// A fitted model ready for one row at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "model/one_row.hpp"

namespace slimsvm {

// From the values of binary problems to a class: see votes.py. `pairs`: problems are pairs of classes, the first positive.
struct Votes {
  bool pairs = false, by_value = true, zero_is_positive = false;
  bool wins(double f) const { return zero_is_positive ? f >= 0 : f > 0; }

  // scores[k] of each class, from the values of all pairs.
  void score(const double* f, int classes, double* sums, double* scores) const {
    std::fill(sums, sums + classes, 0.0);
    std::fill(scores, scores + classes, 0.0);
    for (int i = 0; i < classes; ++i)
      for (int j = i + 1; j < classes; ++j, ++f) {
        sums[i] += *f;
        sums[j] -= *f;
        ++scores[wins(*f) ? i : j];
      }
    // Squeezed into (-1/3, 1/3), so that they never outweigh a vote.
    for (int k = 0; by_value && k < classes; ++k) scores[k] += sums[k] / (3 * (std::fabs(sums[k]) + 1));
  }
};

// A fitted model for one row at a time: checked once, no more than arithmetic afterwards. It changes no member while it
// works: threads may share it.
class RowModel {
 public:
  RowModel(AnyKernel kernel, std::shared_ptr<Rows> vectors, std::vector<double> coef, std::vector<double> bias)
      : kernel_(kernel), vectors_(std::move(vectors)), coef_(std::move(coef)), bias_(std::move(bias)) {}

  Index width() const { return vectors_->width; }
  int outputs() const { return static_cast<int>(bias_.size()); }
  // Inputs are multiplied before anything that was asked for earlier, in the type of the row.
  void scale(std::vector<double> scales) { scales_.insert(scales_.begin(), std::move(scales)); }
  // (x - mean) / spread, before all that.
  void standardise(std::vector<double> mean, std::vector<double> spread) { mean_ = std::move(mean), spread_ = std::move(spread); }
  void decide(int classes, Votes votes) { classes_ = classes, votes_ = votes; }
  void show_scores(Votes votes) { shown_ = votes; }
  int shown() const { return shown_.pairs ? classes_ : outputs(); }  // numbers that show() gives
  Index products() const { return vectors_->size * vectors_->width; }

  // The values of all outputs, of a row whose numbers are `step` bytes apart.
  template <class T>
  void values(const char* row, std::ptrdiff_t step, double* out) const {
    SmallArray numbers(width()), room(vectors_->size + register_room);
    double* x = numbers.get();
    for (Index k = 0; k < width(); ++k) {
      T number;
      __builtin_memcpy(&number, row + k * step, sizeof(T));
      x[k] = number;
    }
    const bool as_given = mean_.empty();
    if (!as_given)
      for (Index k = 0; k < width(); ++k) x[k] = (x[k] - mean_[k]) / spread_[k];
    for (const auto& scales : scales_)
      for (Index k = 0; k < width(); ++k)
        x[k] = as_given ? static_cast<T>(x[k]) * static_cast<T>(scales[k]) : x[k] * scales[k];
    one_row(kernel_, *vectors_, x, coef_.data(), bias_.data(), outputs(), room.get(), out);
  }

  // What decision_function shows.
  void show(const double* values, double* out) const {
    if (!shown_.pairs) return void(std::copy(values, values + outputs(), out));
    SmallArray sums(classes_);
    shown_.score(values, classes_, sums.get(), out);
  }

  // The number of the class.
  int winner(const double* values) const {
    if (outputs() == 1) return votes_.wins(values[0]);
    if (!votes_.pairs) return static_cast<int>(std::max_element(values, values + outputs()) - values);
    SmallArray sums(classes_), scores(classes_);
    votes_.score(values, classes_, sums.get(), scores.get());
    return static_cast<int>(std::max_element(scores.get(), scores.get() + classes_) - scores.get());
  }

 private:
  AnyKernel kernel_;
  std::shared_ptr<Rows> vectors_;
  std::vector<double> coef_, bias_, mean_, spread_;
  std::vector<std::vector<double>> scales_;
  int classes_ = 0;
  Votes votes_, shown_;
};

}  // namespace slimsvm
