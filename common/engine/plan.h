#pragma once

// The parts of one signature (its feeds, fetches and targets) for the tasks: the master's passes on
// the placed graph. All steps are made here, of sessions and of training jobs.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "common/engine/task_part.h"
#include "common/engine/tasks.h"
#include "common/graph/graph.h"
#include "common/graph/placer.h"

namespace dtf::engine {

// Names in users' form: "x", "layer/relu:0".
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

  std::vector<graph::TensorSpec> feed_specs;  // parallel to Signature::feeds
  std::vector<TaskPart> parts;                // of the tasks with nodes, in order
  // parallel to the parts' feeds: indices into Signature::feeds
  std::vector<std::vector<size_t>> feeds;
  std::vector<Fetch> fetches;  // parallel to Signature::fetches
};

// Lends a CPU for folding; returns false if there is none, and nothing is folded.
using WithCpu = std::function<bool(const Tasks::UseCpu&)>;

// Prunes `placed`, a graph with full devices, to the nodes needed by the signature, folds
// constants, joins equal nodes, and partitions by task. A pure function of graph, signature,
// devices and parameters. `parameters` are the variables that steps pull and push if they are on
// another task, as placed (graph/placer.h); any other variable belongs to its node's device.
// Errors: kBadConfig for unknown names, with the nearest; for a tensor that is fed twice; for
// placeholders that are needed and not fed.
Plan makePlan(const graph::Graph& placed, const Signature& signature, const WithCpu& with_cpu,
              std::span<const graph::PlacedVariable> parameters = {});

// For a session on `tasks`, without such parameters.
Plan makePlan(const graph::Graph& placed, const Signature& signature, Tasks& tasks);

}  // namespace dtf::engine
