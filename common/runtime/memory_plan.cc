#include "common/runtime/memory_plan.h"

#include <algorithm>
#include <iterator>
#include <map>
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

// Returns the lowest offset at which `bytes` fit between `taken`.
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

// More than any network has: comparing all pairs would take minutes for a hundred thousand.
constexpr size_t kComparedMax = 8'192;
// With a bounded search the allocator doesn't slow down with many gaps.
constexpr int kGapsLookedAt = 64;

// Memory that is allocated and freed in the order of time.
class Arena {
 public:
  size_t take(size_t bytes) {
    int looked_at = 0;
    for (auto gap = gaps_.begin(); gap != gaps_.end() && looked_at < kGapsLookedAt;
         ++gap, ++looked_at) {
      if (gap->second < bytes) continue;
      const auto [offset, size] = *gap;
      gaps_.erase(gap);
      if (size > bytes) gaps_.emplace(offset + bytes, size - bytes);
      return offset;
    }
    const size_t offset = end_;
    end_ += bytes;
    return offset;
  }

  void giveBack(size_t offset, size_t bytes) {
    auto after = gaps_.lower_bound(offset);
    if (after != gaps_.begin()) {
      const auto before = std::prev(after);
      if (before->first + before->second == offset) {
        offset = before->first;
        bytes += before->second;
        gaps_.erase(before);
      }
    }
    if (after != gaps_.end() && offset + bytes == after->first) {
      bytes += after->second;
      gaps_.erase(after);
    }
    gaps_.emplace(offset, bytes);
  }

  size_t bytes() const { return end_; }

 private:
  std::map<size_t, size_t> gaps_;  // by offset: bytes
  size_t end_ = 0;
};

MemoryPlan planInOrder(std::span<const Lifetime> buffers) {
  MemoryPlan plan;
  plan.offsets.resize(buffers.size());
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return buffers[a].first < buffers[b].first; });
  Arena arena;
  std::multimap<int, size_t> alive;  // by their last use
  for (const size_t at : order) {
    const Lifetime& buffer = buffers[at];
    DTF_CHECK_MSG(buffer.first <= buffer.last, "buffer " + std::to_string(at));
    while (!alive.empty() && alive.begin()->first < buffer.first) {
      const size_t ended = alive.begin()->second;
      arena.giveBack(plan.offsets[ended], roundUp(buffers[ended].bytes));
      alive.erase(alive.begin());
    }
    plan.offsets[at] = arena.take(roundUp(buffer.bytes));
    alive.emplace(buffer.last, at);
  }
  plan.bytes = arena.bytes();
  return plan;
}

}  // namespace

MemoryPlan planMemory(std::span<const Lifetime> buffers) {
  if (buffers.size() > kComparedMax) return planInOrder(buffers);
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
