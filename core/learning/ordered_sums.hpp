// Sums whose bits do not depend on the number of threads.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace slimsvm {

// Sums of slots, added in pairs of neighbours, then pairs of pairs: in the same order whichever slot is done first. Who
// completes a pair adds it, so that threads do not wait for each other.
class OrderedSums {
 public:
  // `parts`: begin and end of what counts, where not all does.
  using Parts = std::vector<std::pair<std::size_t, std::size_t>>;
  OrderedSums(int slots, std::size_t size, Parts parts = {})
      : total(size, 0.0), slots_(static_cast<std::size_t>(slots)), parts_(std::move(parts)) {
    if (parts_.empty()) parts_.emplace_back(0, size);
  }
  std::vector<double> total;

  std::vector<double> fresh() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!free_.empty()) {
        std::vector<double> part = std::move(free_.back());
        free_.pop_back();
        return part;
      }
    }
    return std::vector<double>(total.size(), 0.0);
  }
  void give(std::size_t slot, std::vector<double>&& part) {
    std::vector<double> sum = std::move(part);
    std::size_t place = slot, level = 0, count = slots_;
    for (; count > 1; ++level, place /= 2, count = (count + 1) / 2) {
      if (place + 1 == count && place % 2 == 0) continue;  // it has no neighbour
      std::vector<double> other;
      {
        std::lock_guard<std::mutex> lock(mutex_);
        const auto found = waiting_.find({level, place ^ 1});
        if (found == waiting_.end()) {
          waiting_.emplace(std::pair(level, place), std::move(sum));
          return;
        }
        other = std::move(found->second);
        waiting_.erase(found);
      }
      for (const auto& [begin, end] : parts_)
        for (std::size_t k = begin; k < end; ++k) sum[k] += other[k], other[k] = 0;  // a + b is b + a
      std::lock_guard<std::mutex> lock(mutex_);
      free_.push_back(std::move(other));
    }
    total = std::move(sum);
  }

 private:
  std::mutex mutex_;
  std::size_t slots_;
  Parts parts_;
  std::map<std::pair<std::size_t, std::size_t>, std::vector<double>> waiting_;  // by level and place
  std::vector<std::vector<double>> free_;
};

}  // namespace slimsvm
