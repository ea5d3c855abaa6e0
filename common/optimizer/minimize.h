#pragma once

// Adds the training of variables to a graph: gradients, clipping, the updates of an optimizer with
// its slots, and the count of steps.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/cluster/optimizer_spec.h"
#include "common/graph/graph.h"

namespace dtf::optimizer {

// The counter of steps, as TensorFlow calls it.
inline constexpr char kGlobalStep[] = "global_step";

// Synchronous replicas, as TensorFlow's SyncReplicasOptimizer has them.
struct SyncReplicas {
  int64_t replicas_to_aggregate = 1;  // gradients of one step
  int64_t total_num_replicas = 1;     // clients
  int64_t rank = 0;                   // of this client
};

// The name of the variable that counts the steps of another: "w/sync_step".
inline constexpr char kVersionSuffix[] = "/sync_step";

struct MinimizeOptions {
  // Empty: every float32 variable that the loss depends on.
  std::vector<graph::Output> variables{};
  std::string prefix{};  // of the names of the nodes that belong to no variable: "critic/"
  // The name of the counter. It is added, on the device of the first variable, unless the graph has
  // it.
  std::string global_step = kGlobalStep;
  std::optional<SyncReplicas> replicas{};  // none: each client takes steps by itself
};

// The added nodes that a program needs. Value type.
struct Minimized {
  graph::Output train;                  // runs one step; int64: the global step after it
  graph::Output global_step;            // the counter, a variable
  std::optional<graph::Output> norm{};  // with clip_by_global_norm: the norm before
  // With replicas: int64, 1 if the step has this client's gradient; and a node that ends all waits.
  std::optional<graph::Output> accepted{};
  std::optional<graph::NodeId> finish{};
};

// Adds one step of `spec` that makes `loss` smaller. It has the bits of a job with one worker, the
// same variables and the same settings.
// - Each slot is a variable on the device of its own: "w/Adam", "w/Adam_1", "w/Momentum".
// - A table that only one Gather reads gets a sparse update, if updatesRows(). A node that acts on
//   the table, such as ReadVariable, counts as a reader if the loss depends on its output; it has
//   no gradient, which the error says.
// - The learning rate follows the global step, which all updates of a step read before it is
//   counted.
// With `replicas` the gradient waits beside its variable until the step has enough of them; `train`
// waits for it. Each variable has a version, a variable "w/sync_step". All clients have the same
// graph but for the rank.
// Errors: kBadConfig if the loss is no float32 scalar or doesn't depend on one of the variables, if
// a variable has slots already, if `global_step` names another node, or for settings that don't
// work. After an error the graph may hold unused nodes, but no slots: a second try is possible.
Minimized minimize(graph::Graph& graph, graph::Output loss, const cluster::OptimizerSpec& spec,
                   const MinimizeOptions& options = {});

}  // namespace dtf::optimizer
