#pragma once

// The layout of the parameters: which ps task holds which elements of which variable, and where in
// its arena. Every worker computes the same layout from the same placement; the fingerprint proves
// it.
//
// A shard is one ps task's part of the model: one contiguous arena of float32 in which each slice
// starts on a 64-byte boundary. A pull brings that arena, a push sends a gradient arena of the same
// layout: one message each.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/tensor/shape.h"

namespace dtf::arena {

// One contiguous range of one variable, flattened row-major. All counts and offsets are in elements
// (float32).
struct Slice {
  uint32_t variable = 0;  // index into ParameterLayout::variables
  uint64_t begin = 0;     // first element of the variable
  uint64_t count = 0;
  uint64_t offset = 0;  // in the shard's arena; a multiple of kSliceAlignment
  bool operator==(const Slice&) const = default;
};

inline constexpr uint64_t kSliceAlignment = 16;  // elements: 64 bytes

struct ShardLayout {
  std::vector<Slice> slices;  // by offset; slices of sparse variables are the last
  uint64_t elements = 0;  // of the arena, a multiple of kSliceAlignment; padding elements stay 0
  bool operator==(const ShardLayout&) const = default;
};

// Returns the elements of one row of a table: all dimensions but the first.
uint64_t rowElements(const Shape& table);

struct VariableInfo {
  std::string name;
  Shape shape;
  // Set: a moving average, which the optimizer leaves alone. Workers send measurements in place of
  // its gradient, and each update moves it by 1 - momentum towards their mean.
  std::optional<double> momentum = std::nullopt;
  // True: its gradient comes as rows (gradient_layout.h), and it is updated by rows.
  bool is_sparse = false;
  bool operator==(const VariableInfo&) const = default;
};

struct ParameterLayout {
  std::vector<VariableInfo> variables;  // in creation order
  std::vector<ShardLayout> shards;      // one per ps task, possibly empty
  bool operator==(const ParameterLayout&) const = default;

  // Returns a hash (FNV-1a, 64 bits) of everything above: equal on all tasks that run the same
  // model.
  uint64_t fingerprint() const;
};

// The placer's decision for one variable: parts that cover it exactly once, in order.
struct VariableParts {
  std::string name;
  Shape shape;
  struct Part {
    uint32_t ps_task = 0;
    uint64_t begin = 0;
    uint64_t count = 0;
  };
  std::vector<Part> parts;
  std::optional<double> momentum = std::nullopt;  // see VariableInfo
  bool is_sparse = false;                         // likewise; parts are whole rows
};

// Returns the layout of `variables`. Slices lie in each arena in the order in which a network makes
// their gradients, the last of `variables` first, so that the beginning of an arena can be sent
// while the rest is computed. Slices of sparse variables lie behind the dense ones, in the order of
// `variables`.
// Errors: DTF_CHECK when parts don't cover a variable exactly.
ParameterLayout makeLayout(const std::vector<VariableParts>& variables, uint32_t ps_tasks);

}  // namespace dtf::arena
