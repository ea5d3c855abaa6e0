#pragma once

// The placement of a step's intermediate tensors: one arena, in which buffers that are never alive
// at the same time share their bytes.

#include <cstddef>
#include <span>
#include <vector>

namespace dtf::runtime {

inline constexpr size_t kPlanAlignment = 64;

// One buffer. It is alive from step `first` to step `last`, both included; first <= last.
struct Lifetime {
  size_t bytes = 0;
  int first = 0;
  int last = 0;
};

struct MemoryPlan {
  std::vector<size_t> offsets;  // by buffer; multiples of kPlanAlignment
  size_t bytes = 0;             // of the arena
};

// Places the largest buffer first, each at the lowest offset that is free during its life: "greedy
// by size" of Pisarchyk and Lee, "Efficient memory management for deep neural net inference", 2020.
// That is quadratic in the number of buffers: more than 8192 are placed in the order of time, each
// in the first fitting one of the lowest gaps. Pure.
MemoryPlan planMemory(std::span<const Lifetime> buffers);

}  // namespace dtf::runtime
