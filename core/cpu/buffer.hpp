// Memory on cache-line boundaries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace slimsvm {

using Index = std::int64_t;  // of rows, columns and variables

struct AlignedDelete {
  std::size_t alignment = 64;
  void operator()(void* p) const { ::operator delete(p, std::align_val_t(alignment)); }
};

// An array on cache-line boundaries; what it allocates is not cleared, and lost when it grows.
template <class T>
class Buffer {
 public:
  T* reserve(std::size_t count) {
    if (count > capacity_) {
      data_.reset(static_cast<T*>(::operator new(count * sizeof(T), std::align_val_t(64))));
      capacity_ = count;
    }
    return data_.get();
  }
  T* get() const { return data_.get(); }

 private:
  std::unique_ptr<T, AlignedDelete> data_;
  std::size_t capacity_ = 0;
};

}  // namespace slimsvm
