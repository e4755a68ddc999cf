// Passes over rows, for models f_o(x) = w_o.p(x) + b_o over few features p(x) = T' k(Z, x).
//
// A pass computes everything that it needs of a row anew (kernel values, features, decision values, duals) while the row
// is in the cache, and leaves sums over rows only. Features are kept where memory allows; nothing else is held for a row.
#pragma once

#include <memory>
#include <vector>

#include "cpu/threads.hpp"
#include "kernels/kernel.hpp"
#include "learning/labels.hpp"
#include "learning/loss.hpp"

namespace slimsvm {

// Signed duals of one output that are known better than from its decision values, by ascending row.
struct KnownDuals {
  const Index* rows = nullptr;
  const double* duals = nullptr;
  Index count = 0;
};

// Sums over rows that bound an output's objective from both sides, followed by sum a+ k(z, x) and sum a- k(z, x) over vectors.
// Positive and negative duals are kept apart: they are scaled until they balance.
enum CertificateSum { loss_value, loss_error, up, down, up_gain, down_gain, up_ridge, down_ridge, squares, spread, certificate_sums };

// What a pass may ask of rows, in either precision.
class AnyPasses {
 public:
  virtual ~AnyPasses() = default;
  virtual int outputs() const = 0;
  virtual int features() const = 0;
  virtual int vectors() const = 0;
  virtual Index size() const = 0;
  virtual Index inputs() const = 0;

  // From now on so many threads, at most; results do not depend on it.
  virtual void use_threads(int threads) = 0;
  // New rows (the same number: scaled ones), other vectors: T is vectors x features.
  virtual void set_features(std::shared_ptr<Rows> x, const AnyKernel& kernel, const Rows& z, const double* T, int features) = 0;
  // All that follows is for these outputs, at weights w (one row of features + 1 for each, the bias last).
  // Losses, moments [p 1]'a, and [p 1]' diag(h) [p 1].
  virtual void equations(const OutputIds& ids, const double* w, QuadraticLoss loss, double* value, double* moments, double* grams,
                         Monitor& monitor) = 0;
  // First and second derivatives of the losses at w + t step, for `tries` values of t an output.
  virtual void line(const OutputIds& ids, const double* w, const double* step, const double* t, int tries, QuadraticLoss loss,
                    double* first, double* second, Monitor& monitor) = 0;
  // With the duals at w and coefficients beta (vectors x outputs): M_ij = -sum_o a_io beta_jo k'(x_i, z_j), and of it
  // M'[x 1] (vectors x inputs + 1) and sum_ij M_ij x_i^2 (inputs; null: not asked for).
  virtual void pullback(const OutputIds& ids, const double* w, const double* beta, QuadraticLoss loss, double* value, double* products,
                        double* squares, Monitor& monitor) = 0;
  // What a certificate is made of: see `CertificateSum`. `reach` and `units` say how well decision values are known.
  virtual void certificate(const OutputIds& ids, const double* w, QuadraticLoss loss, const std::vector<KnownDuals>& known, const double* reach,
                           double units, double* out, Monitor& monitor) = 0;
  // Decision values of rows from `begin` on (rows x outputs).
  virtual void values(const OutputIds& ids, const double* w, Index begin, Index end, double* out, Monitor& monitor) = 0;
  // Features of some rows, in ascending order.
  virtual void features_at(const Index* rows, Index count, double* out, Monitor& monitor) = 0;
};

// `keep`: bytes that features may take.
template <class Real>
std::unique_ptr<AnyPasses> make_passes(std::shared_ptr<Rows> x, Labels labels, int threads, std::size_t keep);
extern template std::unique_ptr<AnyPasses> make_passes<float>(std::shared_ptr<Rows>, Labels, int, std::size_t);
extern template std::unique_ptr<AnyPasses> make_passes<double>(std::shared_ptr<Rows>, Labels, int, std::size_t);

}  // namespace slimsvm
