#include "common/train/replica_steps.h"

#include <algorithm>

#include "common/base/check.h"

namespace dtf::train {

ReplicaSteps::ReplicaSteps(const graph::Graph& graph, const std::string& global_step)
    : fetches_{global_step} {
  for (const graph::Node& node : graph.nodes()) {
    if (node.op == "SyncReplicasFinish") finishes_.push_back(node.name);
    if (node.op != "ApplyAccumulated") continue;
    DTF_CHECK_MSG(node.inputs.size() >= 3, node.name);
    const graph::Node& decider = graph.node(node.inputs.back().node);
    if (decider.op == graph::kArriveOp && graph.node(decider.inputs.at(0).node).name == global_step)
      fetches_.push_back(graph.node(node.inputs[node.inputs.size() - 2].node).name);
  }
}

// The global step counts first, then each variable takes the step. A variable that stays behind
// stops the global step.
bool ReplicaSteps::isWhole(engine::Session& session) {
  if (fetches_.size() <= 1) return true;
  const std::vector<Tensor> values = session.run({}, fetches_);
  DTF_CHECK(values.size() == fetches_.size());
  const int64_t step = values[0].as<int64_t>()[0];
  const bool is_even = std::all_of(values.begin(), values.end(), [&](const Tensor& version) {
    return version.as<int64_t>()[0] == step;
  });
  const bool has_moved = looks_ > 0 && step != step_;
  step_ = step;
  looks_ = is_even || has_moved ? 0 : looks_ + 1;
  return is_even || has_moved;
}

void ReplicaSteps::finish(engine::Session& session) const {
  if (!finishes_.empty()) session.run({}, {}, finishes_);
}

}  // namespace dtf::train
