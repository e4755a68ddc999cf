// A pool of threads that lives as long as one fit or one prediction, and the poll that keeps both interruptible.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace slimsvm {

// Called now and then on the calling thread only. It may throw to end the work (Ctrl-C).
class Monitor {
 public:
  virtual ~Monitor() = default;
  void poll() {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < std::chrono::milliseconds(50)) return;
    last_ = now;
    check();
  }

 protected:
  virtual void check() {}

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

class ThreadPool {
 public:
  explicit ThreadPool(int threads) {
    try {
      for (int t = 1; t < threads; ++t) workers_.emplace_back([this, t] { work(t); });
    } catch (const std::system_error&) {
      // The system has no more threads to give: those there are will do.
    }
  }
  ~ThreadPool() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      closing_ = true;
    }
    wake_.notify_all();
    for (auto& w : workers_) w.join();
  }
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  // task(index, thread) for index in [0, count), in any order; the caller takes part and polls.
  // Tasks write to places of their own, so the result does not depend on the number of threads.
  void run(std::size_t count, const std::function<void(std::size_t, int)>& task, Monitor& monitor) {
    if (workers_.empty() || count <= 1) {
      for (std::size_t i = 0; i < count; ++i) {
        task(i, 0);
        monitor.poll();
      }
      return;
    }
    {
      std::lock_guard<std::mutex> lock(mutex_);
      task_ = &task;
      count_ = count;
      next_ = 0;
      failure_ = nullptr;
      running_ = static_cast<int>(workers_.size());
      ++generation_;
    }
    wake_.notify_all();
    drain(0, &monitor);
    await(done_, [this] { return running_ == 0; });
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void drain(int thread, Monitor* monitor) {
    try {
      for (std::size_t i; (i = next_.fetch_add(1)) < count_;) {
        (*task_)(i, thread);
        if (monitor) monitor->poll();
      }
    } catch (...) {
      next_ = count_;
      std::lock_guard<std::mutex> lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
  }
  void work(int thread) {
    std::size_t seen = 0;
    for (;;) {
      await(wake_, [&] { return closing_ || generation_ != seen; });
      if (closing_) return;
      seen = generation_;
      drain(thread, nullptr);
      if (--running_ == 0) {
        std::lock_guard<std::mutex> lock(mutex_);
        done_.notify_one();
      }
    }
  }
  // Passes follow each other within microseconds: it takes longer to fall asleep and be woken than to look again.
  template <class Ready>
  void await(std::condition_variable& bell, Ready ready) {
    const auto begin = std::chrono::steady_clock::now();
    do {
      for (int k = 0; k < 32; ++k) {
        if (ready()) return;
        relax();
      }
    } while (std::chrono::steady_clock::now() - begin < std::chrono::microseconds(50));
    std::unique_lock<std::mutex> lock(mutex_);
    bell.wait(lock, ready);
  }
  static void relax() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#else
    std::this_thread::yield();
#endif
  }

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  const std::function<void(std::size_t, int)>* task_ = nullptr;
  std::size_t count_ = 0;
  std::atomic<std::size_t> next_{0}, generation_{0};
  std::atomic<int> running_{0};
  std::atomic<bool> closing_{false};
  std::exception_ptr failure_;
};

}  // namespace slimsvm
