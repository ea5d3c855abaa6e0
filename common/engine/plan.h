#pragma once

// One signature of a session, what is fed, fetched and run, as parts for its tasks: the master's
// passes, from the placed graph on.

#include <span>
#include <string>
#include <vector>

#include "common/engine/task_part.h"
#include "common/engine/tasks.h"
#include "common/graph/graph.h"

namespace dtf::engine {

// Names as a person gives them: "x", "layer/relu:0".
struct Signature {
  std::vector<std::string> feeds;    // sorted
  std::vector<std::string> fetches;  // in the order of the results
  std::vector<std::string> targets;  // nodes; sorted
  auto operator<=>(const Signature&) const = default;
};

// Owns: the parts. Move-only.
struct Plan {
  struct Fetch {
    size_t part = 0;
    size_t index = 0;  // of the part's fetches
  };

  std::vector<graph::TensorSpec> feed_specs;  // as Signature::feeds
  std::vector<TaskPart> parts;                // of the tasks that have something to do, in order
  std::vector<std::vector<size_t>> feeds;     // as parts' feeds: indices into Signature::feeds
  std::vector<Fetch> fetches;                 // as Signature::fetches
};

// Prunes `placed`, whose nodes have their devices in full, to what the signature needs, folds
// constants, joins equal nodes, and partitions by task. A pure function of graph, signature and
// devices.
// Errors: kBadConfig for names that aren't there, with the nearest; for a tensor that is fed twice;
// for placeholders that are needed and not fed.
Plan makePlan(const graph::Graph& placed, const Signature& signature, Tasks& tasks);

}  // namespace dtf::engine
