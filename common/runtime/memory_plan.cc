#include "common/runtime/memory_plan.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "common/base/check.h"

namespace dtf::runtime {
namespace {

struct Placed {
  size_t begin;
  size_t end;
};

bool together(const Lifetime& a, const Lifetime& b) {
  return a.first <= b.last && b.first <= a.last;
}

size_t roundUp(size_t bytes) {
  return (bytes + kPlanAlignment - 1) / kPlanAlignment * kPlanAlignment;
}

// The lowest offset at which `bytes` fit between `taken`.
size_t lowestGap(std::vector<Placed> taken, size_t bytes) {
  std::sort(taken.begin(), taken.end(),
            [](const Placed& a, const Placed& b) { return a.begin < b.begin; });
  size_t offset = 0;
  for (const Placed& other : taken) {
    if (offset + bytes <= other.begin) break;
    offset = std::max(offset, other.end);
  }
  return offset;
}

}  // namespace

MemoryPlan planMemory(std::span<const Lifetime> buffers) {
  MemoryPlan plan;
  plan.offsets.resize(buffers.size());
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return buffers[a].bytes > buffers[b].bytes; });
  for (size_t at = 0; at < order.size(); ++at) {
    const Lifetime& buffer = buffers[order[at]];
    DTF_CHECK_MSG(buffer.first <= buffer.last, "buffer " + std::to_string(order[at]));
    std::vector<Placed> taken;
    for (size_t before = 0; before < at; ++before) {
      const size_t other = order[before];
      if (together(buffer, buffers[other])) {
        taken.push_back({plan.offsets[other], plan.offsets[other] + roundUp(buffers[other].bytes)});
      }
    }
    const size_t bytes = roundUp(buffer.bytes);
    plan.offsets[order[at]] = lowestGap(std::move(taken), bytes);
    plan.bytes = std::max(plan.bytes, plan.offsets[order[at]] + bytes);
  }
  return plan;
}

}  // namespace dtf::runtime
