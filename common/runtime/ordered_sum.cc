#include "common/runtime/ordered_sum.h"

#include "common/runtime/vector_loops.h"

namespace dtf::runtime {

void addInOrder(const Processor& cpu, const float* terms, int64_t count, int64_t n, float* to) {
  DTF_CHECK(count >= 0 && n >= 0);
  if (count == 0 || n == 0) return;
  const auto add = vectorLoops(cpu.isa).add;
  constexpr int64_t kLine = 16;  // floats
  cpu.forRanges(n, count * kCopiedWork, kLine, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t term = 0; term < count; ++term) {
      add(to + begin, terms + term * n + begin, to + begin, end - begin);
    }
  });
}

}  // namespace dtf::runtime
