// What a solver reports while it works.
#pragma once

#include "cpu/threads.hpp"
#include "smo/feasible.hpp"

namespace slimsvm {

struct Report {
  Index steps, rounds;
  Certificate certificate;
  Index vectors;
};

class SolverMonitor : public Monitor {
 public:
  virtual bool wants_reports() const { return false; }
  virtual void report(const Report&) {}
};

}  // namespace slimsvm
