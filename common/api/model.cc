#include <filesystem>
#include <utility>

#include "common/api/guarded.h"
#include "common/api/handles.h"
#include "common/base/error.h"
#include "common/cluster/cluster_yaml.h"
#include "common/engine/session.h"
#include "common/model/inference_graph.h"
#include "common/train/saved_model.h"

struct dtf_model {
  dtf::model::ModelSpec spec;
  dtf::train::SavedModel saved;
};

using dtf::api::guarded;

namespace {

using dtf::graph::Node;
using dtf::graph::NodeId;
using dtf::graph::Output;

// A copy of all nodes under `prefix`; the ids that those of `from` have in `to`.
std::vector<NodeId> addUnder(const std::string& prefix, const std::string& device,
                             const dtf::graph::Graph& from, dtf::graph::Graph& to) {
  std::vector<NodeId> ids;
  const auto idOf = [&](NodeId id) { return ids.at(static_cast<size_t>(id.value)); };
  for (const Node& node : from.nodes()) {
    dtf::graph::NodeDef def{.name = prefix + node.name,
                            .op = node.op,
                            .inputs = {},
                            .attributes = node.attributes,
                            .control_inputs = {},
                            .device = device};
    for (const Output& input : node.inputs) def.inputs.push_back({idOf(input.node), input.index});
    for (const NodeId before : node.control_inputs) def.control_inputs.push_back(idOf(before));
    ids.push_back(to.addNode(std::move(def)));
  }
  DTF_CHECK(ids.size() == from.nodes().size());
  return ids;
}

}  // namespace

dtf_code dtf_model_load(const char* cluster_file, const char* checkpoint, dtf_model** made) {
  return guarded([&] {
    const dtf::cluster::JobSpec job = dtf::cluster::loadCluster(cluster_file, {});
    if (!job.train)
      throw dtf::Error(dtf::ErrorCode::kBadConfig,
                       std::string(cluster_file) + " has no 'train', and so no model");
    dtf::model::ModelSpec spec = job.train->model;
    dtf::train::SavedModel saved = dtf::train::loadSavedModel(
        dtf::realFileSystem(), std::filesystem::path(job.run_dir) / "checkpoints",
        checkpoint == nullptr ? "" : checkpoint, spec);
    *made = new dtf_model{std::move(spec), std::move(saved)};
  });
}

void dtf_model_free(dtf_model* model) {
  delete model;
}

uint64_t dtf_model_step(const dtf_model* model) {
  return model->saved.step;
}

dtf_code dtf_model_add(const dtf_model* model, dtf_graph* graph, const char* prefix,
                       const char* device, int64_t batch, dtf_output* features,
                       dtf_output* outputs) {
  return guarded([&] {
    if (batch < 1)
      throw dtf::Error(dtf::ErrorCode::kBadConfig,
                       "a batch has at least one example, not " + std::to_string(batch));
    const auto built = dtf::model::buildInferenceGraph(model->spec, batch);
    const std::vector<NodeId> ids =
        addUnder(prefix, device == nullptr ? "" : device, built.model.graph, graph->graph);
    const auto toOutput = [&](Output output) {
      return dtf_output{ids.at(static_cast<size_t>(output.node.value)).value, output.index};
    };
    *features = toOutput(built.model.features);
    *outputs = toOutput(built.outputs);
  });
}

dtf_code dtf_model_restore(const dtf_model* model, const char* prefix, dtf_session* session) {
  return guarded([&] {
    for (const auto& variable : model->saved.variables)
      dtf::api::sessionOf(*session).setVariable(prefix + variable.name, variable.value);
  });
}
