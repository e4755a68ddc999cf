// The pool of threads: every task once, errors heard, alive afterwards.
#include <atomic>
#include <numeric>
#include <stdexcept>

#include "check.hpp"
#include "cpu/threads.hpp"

namespace tests {

using namespace slimsvm;

struct Interrupt {};
class Impatient final : public Monitor {
  void check() override { throw Interrupt(); }
};

void each_once(ThreadPool& pool, std::size_t count, const std::string& name) {
  Monitor monitor;
  std::vector<int> seen(count, 0);  // each task has a place of its own
  std::atomic<bool> numbered{true};
  pool.run(
      count,
      [&](std::size_t i, int thread) {
        ++seen[i];
        if (thread < 0 || thread >= pool.size()) numbered = false;
      },
      monitor);
  check(std::accumulate(seen.begin(), seen.end(), std::size_t(0)) == count && std::count(seen.begin(), seen.end(), 1) == static_cast<long>(count), name);
  check(numbered, name + ": numbers of threads");
}

void threads() {
  for (const int workers : {1, 2, 5}) {
    ThreadPool pool(workers);
    const std::string name = std::to_string(workers) + " threads";
    check(pool.size() >= 1 && pool.size() <= workers, name + ": no more than asked for");
    for (const std::size_t count : {0, 1, 2, 3, 100, 1000}) each_once(pool, count, name + ": each task once");
    for (int round = 0; round < 300; ++round) each_once(pool, 3, name + ": short runs");

    Monitor monitor;
    bool heard = false;
    try {
      pool.run(
          50, [](std::size_t i, int) { if (i == 7) throw std::runtime_error("seven"); }, monitor);
    } catch (const std::runtime_error& error) {
      heard = std::string(error.what()) == "seven";
    }
    check(heard, name + ": an error of a task is heard");
    each_once(pool, 64, name + ": alive after an error");

    Impatient impatient;
    heard = false;
    try {
      const auto start = std::chrono::steady_clock::now();
      pool.run(
          100000,
          [&](std::size_t, int) { while (std::chrono::steady_clock::now() - start < std::chrono::milliseconds(60)) std::this_thread::yield(); },
          impatient);
    } catch (const Interrupt&) {
      heard = true;
    }
    check(heard, name + ": an interrupt is heard");
    each_once(pool, 64, name + ": alive after an interrupt");
  }
}

}  // namespace tests
