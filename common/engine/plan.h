#pragma once

// One signature, what is fed, fetched and run, as parts for the tasks: the master's passes, from
// the placed graph on. Every step is made so, a session's, and a training job's.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "common/engine/task_part.h"
#include "common/engine/tasks.h"
#include "common/graph/graph.h"
#include "common/graph/placer.h"

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

// Lends a CPU to what is computed beforehand; false: there is none, and nothing is folded.
using WithCpu = std::function<bool(const Tasks::UseCpu&)>;

// Prunes `placed`, whose nodes have their devices in full, to what the signature needs, folds
// constants, joins equal nodes, and partitions by task. A pure function of graph, signature,
// devices and parameters: those variables that steps pull and push where they are elsewhere, as
// they were placed (graph/placer.h). Any other is its node's, on its device.
// Errors: kBadConfig for names that aren't there, with the nearest; for a tensor that is fed twice;
// for placeholders that are needed and not fed.
Plan makePlan(const graph::Graph& placed, const Signature& signature, const WithCpu& with_cpu,
              std::span<const graph::PlacedVariable> parameters = {});

// Of a session on `tasks`, which has no such parameters.
Plan makePlan(const graph::Graph& placed, const Signature& signature, Tasks& tasks);

}  // namespace dtf::engine
