#pragma once

#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/graph/builder.h"
#include "tests/unit/graph/reference_interpreter.h"

namespace dtf::graph::testing {

// More elements than one block of a split variable.
inline constexpr int64_t kSide = 5;

// A graph of kSide x kSide matrices in which anything may follow from anything, with values for its
// sources.
struct RandomGraph {
  Graph graph;
  Feeds feeds;  // of every Placeholder and Variable
  std::vector<Output> tensors;
};

// The same for the same state of `random`. Nodes get one of `devices` at random ("" leaves it
// open).
RandomGraph makeRandomGraph(Random& random, int nodes,
                            const std::vector<std::string>& devices = {""});

}  // namespace dtf::graph::testing
