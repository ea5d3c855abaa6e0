#pragma once

// What the tasks of a graph do in a step, and what they send each other: as text, as JSON, for
// Graphviz.

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/json.h"
#include "common/engine/task_part.h"

namespace dtf::launcher {

// A tensor that one task sends another in each step. Value type.
struct SentTensor {
  std::string tensor;  // "layer/product:0"
  TaskId from, to;
  uint64_t bytes = 0;
  std::vector<std::string> readers;  // ops of `to`, by name
};

// Of all parts of one plan, in the order of their edges' numbers.
std::vector<SentTensor> sentTensors(const std::vector<engine::TaskPart>& parts);

// A paragraph for each task: its ops, what it sends to whom, what it answers with; then the sum.
std::string partsText(const std::vector<engine::TaskPart>& parts);
Json partsJson(const std::vector<engine::TaskPart>& parts);

// A digraph with a cluster for each device; what travels between tasks is labelled with its bytes,
// and control edges are dashed. Names with quotes in them are escaped.
std::string partsDot(const std::vector<engine::TaskPart>& parts);

}  // namespace dtf::launcher
