// Tests of the core without Python: run them on any machine, or emulated. SLIMSVM_ISA lowers the instruction set.
#include <cstring>

#include "check.hpp"
#include "cpu/simd.hpp"

namespace {

const char* set_in_use() {
  switch (slimsvm::level()) {
    case slimsvm::Level::avx512: return "avx512";
    case slimsvm::Level::avx2: return "avx2";
    default: return "baseline";
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 1 && !std::strcmp(arguments[1], "--set")) return std::printf("%s\n", set_in_use()) < 0;
  const struct {
    const char* name;
    void (*run)();
  } parts[] = {{"vectors", tests::vectors}, {"kernels", tests::kernels}, {"decisions", tests::decisions},
               {"threads", tests::threads}, {"solver", tests::solver}, {"passes", tests::passes}, {"linear", tests::linear_algebra}, {"quasi-Newton", tests::quasi_newton}, {"row cache", tests::row_cache}};
  for (const auto& part : parts) {
    const tests::Tally before = tests::tally;
    part.run();
    std::printf("%s: %lld checks, %lld failed\n", part.name, tests::tally.checked - before.checked, tests::tally.failed - before.failed);
    std::fflush(stdout);
  }
  std::printf("%s: %s\n", set_in_use(), tests::tally.failed ? "FAILED" : "passed");
  return tests::tally.failed != 0;
}
