#include "smo/solver.hpp"

#include <algorithm>
#include <atomic>

namespace slimsvm {

// Instantiated for each set in a file of its own.
template <class Set>
Solution solve_in(KernelMatrices& matrices, const std::vector<int>& segments, Problem p, const Options& options, bool use_double, WarmStart start,
                  SolverMonitor& monitor);
extern template Solution solve_in<Box>(KernelMatrices&, const std::vector<int>&, Problem, const Options&, bool, WarmStart, SolverMonitor&);
extern template Solution solve_in<CappedBox>(KernelMatrices&, const std::vector<int>&, Problem, const Options&, bool, WarmStart, SolverMonitor&);

Solution solve(KernelMatrices& matrices, const std::vector<int>& segments, Problem p, const Options& options, bool use_double,
                      WarmStart start, SolverMonitor& monitor) {
  const SafeBounds bounds(p);
  p.lower = bounds.lower.data();
  p.upper = bounds.upper.data();
  if (p.total < infinity) return solve_in<CappedBox>(matrices, segments, p, options, use_double, start, monitor);
  return solve_in<Box>(matrices, segments, p, options, use_double, start, monitor);
}

namespace {

// A thread of the pool: it hears of a signal through the one that does.
class WorkerMonitor final : public SolverMonitor {
 public:
  struct Stopped {};
  explicit WorkerMonitor(const std::atomic<bool>& stop) : stop_(stop) {}

 protected:
  void check() override {
    if (stop_) throw Stopped();
  }

 private:
  const std::atomic<bool>& stop_;
};

}  // namespace

std::vector<SolvedJob> solve_all(KernelMatrices& matrices, const std::vector<Job>& jobs, bool use_double, bool certify, SolverMonitor& monitor) {
  std::vector<SolvedJob> solved(jobs.size());
  KernelMatrix<double>& exact = matrices.in_double();
  const auto solve_one = [&](std::size_t k, int thread, SolverMonitor& ear) {
    const Job& job = jobs[k];
    Options options = job.options;
    options.thread = thread;
    Solution found = solve(matrices, job.segments, job.problem, options, use_double, job.start, ear);
    if (certify) {
      const Certifier certify_duals(job.problem, options.tolerance, matrices.dot_product_degree);
      PrimalCertificate& certified = solved[k].certified = certify_duals(found.a, found.product, found.diagonal);
      if (certified.rounding > Certifier::negligible * options.tolerance && job.problem.size <= double_below) {
        const std::vector<double> product = exact.compensated_product(exact.view(job.segments), found.a, ear);
        certified = certify_duals(found.a, product, found.diagonal, true);
      }
    }
    solved[k].solution = std::move(found);
  };
  const bool small = std::all_of(jobs.begin(), jobs.end(), [](const Job& job) { return job.problem.size <= double_below; });
  if (small) exact.prefetch(double_below, monitor);
  if (!small || !exact.resident()) {
    for (std::size_t k = 0; k < jobs.size(); ++k) solve_one(k, 0, monitor);
    return solved;
  }
  std::atomic<bool> stop{false};
  exact.pool().run(
      jobs.size(),
      [&](std::size_t k, int thread) {
        WorkerMonitor worker(stop);
        try {
          solve_one(k, thread, thread == 0 ? monitor : worker);
        } catch (const WorkerMonitor::Stopped&) {  // another thread has the reason
        } catch (...) {
          stop = true;
          throw;
        }
      },
      monitor);
  return solved;
}

}  // namespace slimsvm
