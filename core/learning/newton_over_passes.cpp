// A whole step is tried with all that the next one needs; a line search, in passes that look at three places at once,
// follows where the step was too long or too short.
#include "learning/newton_over_passes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "linalg/cholesky.hpp"

namespace slimsvm {

namespace {

class NewtonOverPasses {
 public:
  NewtonOverPasses(AnyPasses& passes, QuadraticLoss loss, Monitor& monitor) : passes_(passes), loss_(loss), monitor_(monitor), size_(passes.features() + 1) {}

  NewtonResult run(const OutputIds& ids, std::vector<double> start, const double* bias_curvature, double tol, int max_steps) {
    const int outputs = static_cast<int>(ids.size());
    NewtonResult found{std::move(start), std::vector<int>(outputs, 0), std::vector<char>(outputs, 0), true};
    std::vector<double> last(outputs, std::numeric_limits<double>::infinity());
    std::vector<int> open(outputs);
    std::iota(open.begin(), open.end(), 0);
    Iterates at = point(ids, found.V);
    for (int round = 0; round < max_steps && !open.empty(); ++round) {
      std::vector<double> steps, gains, before;
      std::vector<int> moving, kept;
      for (std::size_t k = 0; k < open.size(); ++k) {
        const int o = open[k];
        std::vector<double> step(size_);
        double* gram = at.grams.data() + k * size_ * size_;
        const double* gradient = at.gradient.data() + k * size_;
        if (!solve(gram, bias_curvature[o], gradient, step.data())) {
          found.exact = false;
          return found;
        }
        double gain = 0;
        const double now = objective(at, k);
        for (int j = 0; j < size_; ++j) gain -= 0.5 * step[j] * gradient[j];
        // Below a relative gain of 1e-6 each step should square it; if not, rounding errors are all that is left.
        const bool stuck = gain > 0.5 * last[o] && gain < 1e-6 * now;
        last[o] = gain;
        ++found.steps[o];
        if (gain > tol * now && !stuck) {
          moving.push_back(o);
          kept.push_back(static_cast<int>(k));
          steps.insert(steps.end(), step.begin(), step.end());
          gains.push_back(gain);
          before.push_back(now);
        } else {  // the last step is taken whole: it squares what is left to gain
          for (int j = 0; j < size_; ++j) found.V[static_cast<std::size_t>(o) * size_ + j] += step[j];
          found.converged[o] = 1;
        }
      }
      open = moving;
      if (open.empty()) break;
      at = moved(chosen(ids, open), rows_of(at.V, kept), steps, gains, before);
      for (std::size_t k = 0; k < open.size(); ++k)
        std::copy_n(at.V.begin() + k * size_, size_, found.V.begin() + static_cast<std::size_t>(open[k]) * size_);
    }
    return found;
  }

 private:
  static constexpr double worst_pivot = 1e-10;  // squared, of a matrix with diagonal 1
  static constexpr double rounding = 1e-6;  // relative, of sums over features in float
  static constexpr double nearly = 0.1;  // of the slope where a step begins: with less at its end it needs no line search

  struct Iterates {
    std::vector<double> V, value, gradient, grams;
  };

  static OutputIds chosen(const OutputIds& ids, const std::vector<int>& some) {
    OutputIds out;
    for (const int k : some) out.push_back(ids[k]);
    return out;
  }
  std::vector<double> rows_of(const std::vector<double>& m, const std::vector<int>& some) const {
    std::vector<double> out;
    for (const int k : some) out.insert(out.end(), m.begin() + static_cast<std::ptrdiff_t>(k) * size_, m.begin() + static_cast<std::ptrdiff_t>(k + 1) * size_);
    return out;
  }

  Iterates point(const OutputIds& ids, const std::vector<double>& V) {
    const std::size_t outputs = ids.size(), size = static_cast<std::size_t>(size_);
    Iterates at{V, std::vector<double>(outputs), std::vector<double>(outputs * size), std::vector<double>(outputs * size * size)};
    passes_.equations(ids, V.data(), loss_, at.value.data(), at.gradient.data(), at.grams.data(), monitor_);
    for (std::size_t k = 0; k < outputs * size; ++k) at.gradient[k] = (k % size == size - 1 ? 0.0 : V[k]) - at.gradient[k];
    return at;
  }

  double objective(const Iterates& at, std::size_t k) const {
    double sum = at.value[k];
    for (int j = 0; j + 1 < size_; ++j) sum += 0.5 * at.V[k * size_ + j] * at.V[k * size_ + j];
    return sum;
  }

  // At the best places along steps that promise `gains`, from objectives `before`.
  Iterates moved(const OutputIds& ids, const std::vector<double>& V, const std::vector<double>& steps, const std::vector<double>& gains,
              const std::vector<double>& before) {
    std::vector<double> ends(V);
    for (std::size_t k = 0; k < ends.size(); ++k) ends[k] += steps[k];
    Iterates whole = point(ids, ends);
    std::vector<int> left;
    for (std::size_t k = 0; k < ids.size(); ++k) {
      double slope = 0;
      for (int j = 0; j < size_; ++j) slope += whole.gradient[k * size_ + j] * steps[k * size_ + j];
      // A step from where nothing is curved may be too long by any factor, and the slope at its end small by chance.
      const bool lower = objective(whole, k) <= (1 + rounding) * before[k];
      if (!(lower && std::fabs(slope) <= nearly * 2 * gains[k])) left.push_back(static_cast<int>(k));
    }
    if (left.empty()) return whole;
    const std::vector<double> from = rows_of(V, left), along = rows_of(steps, left);
    std::vector<double> promised;
    for (const int k : left) promised.push_back(gains[k]);
    const OutputIds some = chosen(ids, left);
    const std::vector<double> t = line_search(some, from, along, promised);
    std::vector<double> better(from);
    for (std::size_t k = 0; k < left.size(); ++k)
      for (int j = 0; j < size_; ++j) better[k * size_ + j] += t[k] * along[k * size_ + j];
    const Iterates other = point(some, better);
    for (std::size_t k = 0; k < left.size(); ++k) {
      const std::size_t place = static_cast<std::size_t>(left[k]), size = static_cast<std::size_t>(size_);
      whole.value[place] = other.value[k];
      std::copy_n(other.V.begin() + k * size, size, whole.V.begin() + place * size);
      std::copy_n(other.gradient.begin() + k * size, size, whole.gradient.begin() + place * size);
      std::copy_n(other.grams.begin() + k * size * size, size * size, whole.grams.begin() + place * size * size);
    }
    return whole;
  }

  // step = -(gram + diag(1 ... 1, least))^-1 gradient, scaled to a diagonal of 1; false where rounding has eaten it.
  bool solve(double* gram, double least, const double* gradient, double* step) {
    const std::size_t size = static_cast<std::size_t>(size_);
    std::vector<double> scale(size);
    for (std::size_t j = 0; j < size; ++j) {
      double& diagonal = gram[j * size + j];
      diagonal += j + 1 < size ? 1.0 : least;
      if (!(diagonal > 0 && diagonal < std::numeric_limits<double>::infinity())) return false;
      scale[j] = 1 / std::sqrt(diagonal);
    }
    matrix_.assign(gram, gram + size * size);
    for (std::size_t j = 0; j < size; ++j)
      for (std::size_t k = 0; k <= j; ++k) matrix_[j * size + k] *= scale[j] * scale[k];
    if (!dispatch<CholeskyFactor>(matrix_.data(), size_)) return false;
    for (std::size_t j = 0; j < size; ++j) {
      if (!(matrix_[j * size + j] * matrix_[j * size + j] > worst_pivot)) return false;
      step[j] = -gradient[j] * scale[j];
    }
    solve_factored(matrix_, size_, step);
    for (std::size_t j = 0; j < size; ++j)
      if (!std::isfinite(step[j] *= scale[j])) return false;
    return true;
  }

  // The t that is best along each step: the root of an increasing derivative, ids is -2 gain at t = 0 and to be at most a
  // thousandth of that. Every other time the bracket is halved, so that it is sure to shrink; a step may be too long by many
  // orders of magnitude, where the loss is straight: wide brackets are split by ratios.
  std::vector<double> line_search(const OutputIds& ids, const std::vector<double>& V, const std::vector<double>& steps,
                                  const std::vector<double>& gains) {
    constexpr double infinite = std::numeric_limits<double>::infinity();
    constexpr int tries = 3;
    struct LineEnd {
      double t, first, second;
    };
    const std::size_t outputs = ids.size();
    std::vector<double> best(outputs, 1.0), missed(outputs, infinite);
    std::vector<LineEnd> low, high(outputs, LineEnd{infinite, infinite, infinite});
    for (const double gain : gains) low.push_back({0, -2 * gain, 0});
    std::vector<std::array<double, tries>> places(outputs, {0.5, 1.0, 2.0});
    std::vector<int> open(outputs);
    std::iota(open.begin(), open.end(), 0);
    for (int round = 0; round < 25 && !open.empty(); ++round) {
      const std::vector<double> from = rows_of(V, open), along = rows_of(steps, open);
      std::vector<double> t, first(open.size() * tries), second(open.size() * tries);
      for (const int k : open) t.insert(t.end(), places[k].begin(), places[k].end());
      passes_.line(chosen(ids, open), from.data(), along.data(), t.data(), tries, loss_, first.data(), second.data(), monitor_);
      std::vector<int> still;
      for (std::size_t i = 0; i < open.size(); ++i) {
        const int k = open[i];
        double slope = 0, bend = 0;
        for (int j = 0; j + 1 < size_; ++j) {
          const double d = along[i * size_ + j];
          slope += from[i * size_ + j] * d;
          bend += d * d;
        }
        for (int p = 0; p < tries; ++p) {
          const LineEnd end{t[i * tries + p], slope + t[i * tries + p] * bend + first[i * tries + p], bend + second[i * tries + p]};
          if (std::fabs(end.first) < missed[k]) best[k] = end.t, missed[k] = std::fabs(end.first);
          if (end.first <= 0 && end.t >= low[k].t) low[k] = end;
          if (end.first >= 0 && end.t <= high[k].t) high[k] = end;
        }
        if (missed[k] <= 2e-3 * gains[k]) continue;
        still.push_back(k);
        const LineEnd &a = low[k], &b = high[k];
        const bool wide = !(b.t < infinite);
        const double end = wide ? 64 * std::max(a.t, 1.0) : b.t, begin = std::max(a.t, end / 4096), ratio = end / begin;
        constexpr double nothing = std::numeric_limits<double>::quiet_NaN();
        // Newton's steps from either end, and the secant between.
        places[k] = {a.t - a.first / a.second, b.t - b.first / b.second,
                     round % 2 ? nothing : a.t - a.first * (b.t - a.t) / (b.first - a.first)};
        constexpr double parts[tries] = {0.25, 0.75, 0.5};
        for (int p = 0; p < tries; ++p)
          if (!(places[k][p] > a.t && places[k][p] < b.t))
            places[k][p] = ratio > 4 ? begin * std::pow(ratio, parts[p]) : a.t + (end - a.t) * parts[p];
      }
      open = std::move(still);
    }
    return best;
  }

  AnyPasses& passes_;
  QuadraticLoss loss_;
  Monitor& monitor_;
  int size_;
  std::vector<double> matrix_;
};

}  // namespace

NewtonResult newton_over_passes(AnyPasses& passes, const OutputIds& ids, std::vector<double> start, const double* bias_curvature,
                                QuadraticLoss loss, double tol, int max_steps, Monitor& monitor) {
  return NewtonOverPasses(passes, loss, monitor).run(ids, std::move(start), bias_curvature, tol, max_steps);
}

}  // namespace slimsvm
