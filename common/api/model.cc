#include <filesystem>
#include <string>
#include <utility>

#include "common/api/guarded.h"
#include "common/api/handles.h"
#include "common/base/error.h"
#include "common/cluster/cluster_yaml.h"
#include "common/data/data_signature.h"
#include "common/engine/session.h"
#include "common/model/signature.h"
#include "common/train/saved_model.h"

struct dtf_model {
  dtf::model::ModelSpec spec;
  dtf::train::SavedModel saved;
  std::string data;  // the signature of the training data as JSON; empty if unknown
};

struct dtf_signature {
  std::vector<dtf::model::SignatureTensor> tensors;  // of the graph that it was added to
};

using dtf::api::guarded;

namespace {

using dtf::graph::Node;
using dtf::graph::NodeId;
using dtf::graph::Output;

constexpr char kInitial[] = "initial";

// The prefix and the devices for the nodes of a signature.
struct Under {
  std::string prefix, device;
  std::vector<std::string> variable_devices;  // in turn; empty: `device`
};

// Copies all nodes; returns the ids in `to` of the nodes of `from`.
std::vector<NodeId> addUnder(const Under& under, const dtf::graph::Graph& from,
                             dtf::graph::Graph& to) {
  std::vector<NodeId> ids;
  size_t variables = 0;
  const auto idOf = [&](NodeId id) { return ids.at(static_cast<size_t>(id.value)); };
  for (const Node& node : from.nodes()) {
    dtf::graph::NodeDef def{.name = under.prefix + node.name,
                            .op = node.op,
                            .inputs = {},
                            .attributes = node.attributes,
                            .control_inputs = {},
                            .device = under.device};
    if (node.op == "Variable" && !under.variable_devices.empty())
      def.device = under.variable_devices[variables++ % under.variable_devices.size()];
    for (const Output& input : node.inputs) def.inputs.push_back({idOf(input.node), input.index});
    for (const NodeId before : node.control_inputs) def.control_inputs.push_back(idOf(before));
    ids.push_back(to.addNode(std::move(def)));
  }
  DTF_CHECK(ids.size() == from.nodes().size());
  return ids;
}

dtf_role roleOf(dtf::model::SignatureTensor::Role role) {
  switch (role) {
    case dtf::model::SignatureTensor::Role::kInput:
      return DTF_INPUT;
    case dtf::model::SignatureTensor::Role::kOutput:
      return DTF_OUTPUT;
    case dtf::model::SignatureTensor::Role::kVariable:
      return DTF_VARIABLE;
  }
  DTF_CHECK_MSG(false, "a role");
}

}  // namespace

dtf_code dtf_model_load(const char* cluster_file, const char* checkpoint, dtf_model** made) {
  return guarded([&] {
    const dtf::cluster::JobSpec job = dtf::cluster::loadCluster(cluster_file, {});
    if (!job.train)
      throw dtf::Error(dtf::ErrorCode::kBadConfig,
                       std::string(cluster_file) + " has no 'train', and so no model");
    dtf::model::ModelSpec spec = job.train->model;
    const std::string which = checkpoint == nullptr ? "" : checkpoint;
    dtf::train::SavedModel saved =
        which == kInitial
            ? dtf::train::initialModel(spec, job.train->data.seed)
            : dtf::train::loadSavedModel(dtf::realFileSystem(),
                                         std::filesystem::path(job.run_dir) / "checkpoints", which,
                                         spec, &job.train->data.train);
    std::string data = saved.signature ? dtf::data::encodeSignature(*saved.signature) : "";
    *made = new dtf_model{std::move(spec), std::move(saved), std::move(data)};
  });
}

void dtf_model_free(dtf_model* model) {
  delete model;
}

uint64_t dtf_model_step(const dtf_model* model) {
  return model->saved.step;
}

const char* dtf_model_data(const dtf_model* model) {
  return model->data.empty() ? nullptr : model->data.c_str();
}

const char* dtf_model_column(const dtf_model* model, const char* part, size_t index) {
  if (!model->saved.signature) return nullptr;
  for (const auto* parts : {&model->saved.signature->inputs, &model->saved.signature->targets})
    for (const dtf::data::PartSignature& each : *parts)
      if (each.name == part)
        return index < each.columns.size() ? each.columns[index].c_str() : nullptr;
  return nullptr;
}

const char* dtf_model_class(const dtf_model* model, size_t index) {
  const auto& names = model->saved.class_names;
  return index < names.size() ? names[index].c_str() : nullptr;
}

dtf_code dtf_model_add(const dtf_model* model, const char* name, dtf_graph* graph,
                       const char* prefix, const char* device, const char* const* variable_devices,
                       size_t count, int64_t batch, dtf_signature** made) {
  return guarded([&] {
    if (batch < 1)
      throw dtf::Error(dtf::ErrorCode::kBadConfig,
                       "a batch has at least one example, not " + std::to_string(batch));
    auto signature = dtf::model::buildSignature(model->spec, name, batch);
    const Under under{
        prefix, device == nullptr ? "" : device, {variable_devices, variable_devices + count}};
    const std::vector<NodeId> ids = addUnder(under, signature.graph, graph->graph);
    for (dtf::model::SignatureTensor& each : signature.tensors)
      each.tensor.node = ids.at(static_cast<size_t>(each.tensor.node.value));
    *made = new dtf_signature{std::move(signature.tensors)};
  });
}

void dtf_signature_free(dtf_signature* signature) {
  delete signature;
}

size_t dtf_signature_count(const dtf_signature* signature) {
  return signature->tensors.size();
}

const char* dtf_signature_tensor(const dtf_signature* signature, size_t index, dtf_role* role,
                                 dtf_output* tensor) {
  if (index >= signature->tensors.size()) return nullptr;
  const dtf::model::SignatureTensor& found = signature->tensors[index];
  if (role != nullptr) *role = roleOf(found.role);
  if (tensor != nullptr) *tensor = {found.tensor.node.value, found.tensor.index};
  return found.name.c_str();
}

dtf_code dtf_model_restore(const dtf_model* model, const char* prefix, dtf_session* session) {
  return guarded([&] {
    for (const auto& variable : model->saved.variables)
      dtf::api::sessionOf(*session).setVariable(prefix + variable.name, variable.value);
  });
}
