#pragma once

#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/graph/builder.h"
#include "tests/unit/graph/reference_interpreter.h"

namespace dtf::graph::testing {

// More elements than one block of a split variable.
inline constexpr int64_t kSide = 5;

// A random graph of kSide x kSide matrices, with values for its sources.
struct RandomGraph {
  Graph graph;
  Feeds feeds;  // of every Placeholder and Variable
  std::vector<Output> tensors;
};

// Makes the same graph for the same state of `random`. Each node gets one of `devices` at random
// ("" leaves it open).
RandomGraph makeRandomGraph(Random& random, int nodes,
                            const std::vector<std::string>& devices = {""});

}  // namespace dtf::graph::testing
