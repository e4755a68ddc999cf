// Features p(x) = T' k(Z, x) of panels of rows, kept where memory allows.
#pragma once

#include <optional>
#include <typeindex>
#include <vector>

#include "learning/panel_kernel.hpp"

namespace slimsvm {

// Work space of one thread.
template <class Real>
struct FeatureScratch {
  BlockScratch<Real> blocks;
  BlockScratch<double> blocks_in_double;
  Buffer<double> kernel_in_double;
  Buffer<Real> kernel, features;
};

template <class Real>
class PanelFeatures {
 public:
  // `keep`: bytes that features may take.
  explicit PanelFeatures(std::size_t keep) : keep_(keep) {}

  int count() const { return count_; }
  int vectors() const { return vectors_; }
  bool sparse() const { return sparse_; }
  Slope slope_kind() const { return slope_kind_; }

  // Rows, and vectors Z; T is vectors x features. `known_rows`: the rows were looked at before.
  void set(const Rows& x, bool known_rows, const AnyKernel& kernel, const Rows& z, const double* T, int features) {
    known_rows = known_rows && kind_ == kernel.kind();
    kind_ = kernel.kind();
    x_ = &x;
    vectors_ = static_cast<int>(z.size);
    count_ = features;
    if (is_identity(T, vectors_, features))
      whitening_.reset();
    else
      whitening_.emplace().pack(T, features, vectors_, 1, features, true);
    sparse_ = x.density() < sparse_below;
    precision_ = sizeof(Real) == 4 && kernel->blurred_in_float(z) ? Precision::in_double : Precision::of_features;
    if (precision_ == Precision::in_double)
      kernel_in_double_.set(kernel->blocks(double(), z.width, sparse_), z);
    else
      kernel_.set(kernel->blocks(Real(), z.width, sparse_), z);
    slope_kind_ = kernel->slope_kind();
    slopes_.set(kernel->slope_blocks(Real(), z.width, sparse_), z);
    keep_panels();
    keep_rows(known_rows);
  }

  // Features of the panel that starts with this row, [feature][row].
  const Real* panel(FeatureScratch<Real>& mine, Index first, int rows) {
    const std::size_t panel = static_cast<std::size_t>(first / panel_rows);
    const bool kept = kept_ != Kept::nothing;
    Real* features = kept ? store_.get() + panel * panel_size() : mine.features.reserve(panel_size());
    if (kept && filled_[panel]) return features;
    Index ids[panel_rows];
    for (int r = 0; r < rows; ++r) ids[r] = first + r;
    Real* kernel = !whitening_ ? features : kept_ == Kept::features_and_kernel ? kernel_store_.get() + panel * kernel_size() : mine.kernel.reserve(kernel_size());
    if (rows < panel_rows) std::fill(kernel, kernel + kernel_size(), Real(0));
    if (precision_ == Precision::in_double) {
      double* wide = mine.kernel_in_double.reserve(kernel_size());
      if (rows < panel_rows) std::fill(wide, wide + kernel_size(), 0.0);
      kernel_in_double_.evaluate(*x_, ids, rows, mine.blocks_in_double, wide);
      std::copy(wide, wide + kernel_size(), kernel);
    } else if (strips_.empty()) {
      kernel_.evaluate(*x_, ids, rows, mine.blocks, kernel);
    } else {
      kernel_.evaluate(*x_, ids, rows, strips_[panel], mine.blocks, kernel);
    }
    if (whitening_) dispatch<PanelProduct<Real>>(static_cast<const PackedMatrix<Real>*>(&*whitening_), static_cast<const Real*>(kernel), features);
    if (kept) filled_[panel] = 1;
    return features;
  }
  // Kernel values of the panel that starts with this row, [vector][row], if they are kept: then the slopes follow from them.
  const Real* kept_kernel(Index first) const {
    if (kept_ != Kept::features_and_kernel) return nullptr;
    return kernel_store_.get() + static_cast<std::size_t>(first / panel_rows) * kernel_size();
  }
  // Slopes of up to a panel of rows, or the kernel values that they follow from, [vector][row].
  void slopes(FeatureScratch<Real>& mine, const Index* ids, int rows, Real* out) const {
    if (rows < panel_rows) std::fill(out, out + kernel_size(), Real(0));
    slopes_.evaluate(*x_, ids, rows, mine.blocks, out);
  }
  std::size_t kernel_size() const { return static_cast<std::size_t>(vectors_) * panel_rows; }

  void diagonal(const Index* ids, int count, double* out) const {
    if (precision_ == Precision::in_double)
      kernel_in_double_.blocks().diagonal(*x_, ids, count, out);
    else
      kernel_.blocks().diagonal(*x_, ids, count, out);
  }

 private:
  enum class Kept { nothing, features, features_and_kernel };
  enum class Precision { of_features, in_double };  // of kernel values: double where rounded rows would blur them
  static constexpr Index wide = 64;
  static constexpr std::size_t most_packed = std::size_t(1) << 28;  // bytes of rows that are kept packed

  static bool is_identity(const double* T, int rows, int columns) {
    if (rows != columns) return false;
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j)
        if (T[static_cast<std::size_t>(i) * columns + j] != (i == j)) return false;
    return true;
  }
  std::size_t panel_size() const { return static_cast<std::size_t>(count_) * panel_rows; }
  std::size_t panels() const { return static_cast<std::size_t>((x_->size + panel_rows - 1) / panel_rows); }

  void keep_panels() {
    const std::size_t own = panels() * panel_size(), cells = panels() * kernel_size();
    kept_ = own * sizeof(Real) <= keep_ ? Kept::features : Kept::nothing;
    if (kept_ != Kept::nothing) store_.reserve(own);
    filled_.assign(kept_ != Kept::nothing ? panels() : 0, 0);
    // Kernel values of wide rows cost more to compute than to keep. A pullback asks for slopes, which are to follow from them.
    const bool slopes_follow = slope_kind_ == Slope::value || slope_kind_ == Slope::one_minus_squared;
    if (kept_ == Kept::features && whitening_ && x_->width >= wide && slopes_follow && cells * sizeof(Real) <= keep_) {
      kept_ = Kept::features_and_kernel;
      kernel_store_.reserve(cells);
    }
  }
  // Wide rows that are looked at again cost more to pack than to keep packed.
  void keep_rows(bool known) {
    const std::size_t packed = panels() * panel_rows * static_cast<std::size_t>(x_->width) * sizeof(Real);
    if (!known || sparse_ || precision_ == Precision::in_double || x_->width < wide || packed > std::min(keep_, most_packed))
      strips_.clear();
    else if (strips_.empty())
      strips_.resize(panels());
  }

  std::size_t keep_;
  const Rows* x_ = nullptr;
  std::type_index kind_ = typeid(void);  // of the kernel
  int count_ = 0, vectors_ = 0;
  bool sparse_ = false;
  Precision precision_ = Precision::of_features;
  Kept kept_ = Kept::nothing;
  Slope slope_kind_ = Slope::none;
  PanelKernel<Real> kernel_, slopes_;
  PanelKernel<double> kernel_in_double_;
  std::optional<PackedMatrix<Real>> whitening_;  // T', unless it is the identity
  Buffer<Real> store_, kernel_store_;
  std::vector<char> filled_;                // is this panel in the store?
  std::vector<PackedStrip<Real>> strips_;  // packed rows, if they are kept
};

}  // namespace slimsvm
