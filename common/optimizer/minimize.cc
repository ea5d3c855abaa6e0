#include "common/optimizer/minimize.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/graph/autodiff.h"
#include "common/graph/initializer.h"
#include "common/optimizer/optimizer.h"
#include "common/optimizer/optimizer_check.h"
#include "common/optimizer/optimizer_text.h"
#include "common/optimizer/sparse_update.h"

namespace dtf::optimizer {
namespace {

using graph::Attributes;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Output;

// A trained variable.
struct Trained {
  Output variable;
  Output by;                      // the tensor to differentiate by: the variable, or its rows
  std::optional<Output> indices;  // of the rows
  Output gradient{};
};

[[noreturn]] void refuseGraph(const std::string& why) {
  throw Error(ErrorCode::kBadConfig, why);
}

// Returns for each node whether float32 tensors lead from it to the loss.
std::vector<bool> nodesBehind(const Graph& graph, Output loss) {
  std::vector<bool> is_behind(graph.nodes().size(), false);
  is_behind[static_cast<size_t>(loss.node.value)] = true;
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    if (!is_behind[static_cast<size_t>(node->id.value)]) continue;
    for (const Output& input : node->inputs)
      if (graph.spec(input).dtype == DType::kFloat32)
        is_behind[static_cast<size_t>(input.node.value)] = true;
  }
  return is_behind;
}

// Returns the float32 variables among those nodes, in their order.
std::vector<Output> variablesAmong(const Graph& graph, const std::vector<bool>& is_behind) {
  std::vector<Output> found;
  for (const Node& node : graph.nodes())
    if (node.op == "Variable" && node.outputs[0].dtype == DType::kFloat32 &&
        is_behind[static_cast<size_t>(node.id.value)])
      found.push_back({node.id});
  return found;
}

// Returns the only look-up of rows of the variable; nullptr if anything else reads its value. A
// node that acts on the variable, such as ReadVariable or AssignAdd, reads it if the loss depends
// on the output: the gradient by the rows would lack its part.
const Node* lookUpOf(const Graph& graph, Output variable, const std::vector<bool>& is_behind) {
  const Node* found = nullptr;
  for (const Node& node : graph.nodes()) {
    const std::span<const Output> acts_on = graph::variablesOf(node);
    if (is_behind[static_cast<size_t>(node.id.value)] &&
        std::find(acts_on.begin(), acts_on.end(), variable) != acts_on.end())
      return nullptr;
    const size_t state = acts_on.size();
    for (size_t i = state; i < node.inputs.size(); ++i) {
      if (node.inputs[i] != variable) continue;
      if (found != nullptr || node.op != "Gather" || i != 0) return nullptr;
      found = &node;
    }
  }
  return found;
}

// Checked before any node is added; the ops check it again, for graphs of other clients.
void checkReplicas(const SyncReplicas& replicas) {
  const auto isCount = [](int64_t n) { return n >= 1 && n <= graph::kReplicasMax; };
  if (!isCount(replicas.replicas_to_aggregate) || !isCount(replicas.total_num_replicas))
    refuseGraph(fmt::format(
        "replicas_to_aggregate is {} and total_num_replicas {}; both are from 1 to {}",
        replicas.replicas_to_aggregate, replicas.total_num_replicas, graph::kReplicasMax));
  if (replicas.rank < 0 || replicas.rank >= replicas.total_num_replicas)
    refuseGraph(fmt::format("rank {} is none of the {} replicas, which count from 0", replicas.rank,
                            replicas.total_num_replicas));
}

// Adds the nodes of one call of minimize().
// Borrows: all constructor arguments.
class Minimizer {
 public:
  Minimizer(Graph& graph, Output loss, const cluster::OptimizerSpec& spec,
            const MinimizeOptions& options)
      : graph_(graph),
        loss_(loss),
        spec_(spec),
        options_(options),
        name_(graph.uniqueName(options.prefix + tensorflowName(spec))) {}

  Minimized run() {
    findTrained();
    wantOwnCounter();
    Minimized made;
    made.global_step = globalStep();
    differentiate();
    if (spec_.clip_by_global_norm > 0) made.norm = clip();
    if (options_.replicas) {
      addReplicas(made, *options_.replicas);
      return made;
    }
    const Output step{add("ReadVariable", "/step", {made.global_step})};
    std::vector<NodeId> updates;
    for (const Trained& trained : trained_) updates.push_back(update(trained, step));
    const std::string device = graph_.node(made.global_step.node).device;  // adding a node moves it
    const Output one{add("Const", "/one", {},
                         {{"dtype", DType::kInt64}, {"shape", Shape()}, {"value", 1.0}}, device)};
    made.train = {add("AssignAdd", "", {made.global_step, one}, {}, device, std::move(updates))};
    return made;
  }

 private:
  NodeId add(std::string_view op, const std::string& under, std::vector<Output> inputs,
             Attributes attributes = {}, const std::string& device = {},
             std::vector<NodeId> after = {}) {
    return graph_.addNode({.name = graph_.uniqueName(name_ + under),
                           .op = std::string(op),
                           .inputs = std::move(inputs),
                           .attributes = std::move(attributes),
                           .control_inputs = std::move(after),
                           .device = device});
  }

  void findTrained() {
    const std::vector<bool> is_behind = nodesBehind(graph_, loss_);
    std::vector<Output> variables = options_.variables;
    if (variables.empty()) variables = variablesAmong(graph_, is_behind);
    if (variables.empty())
      refuseGraph("the loss '" + graph_.node(loss_.node).name + "' depends on no variable");
    for (const Output& variable : variables) {
      const Node& node = graph_.node(variable.node);
      if (node.op != "Variable" || node.outputs[0].dtype != DType::kFloat32)
        refuseGraph("'" + node.name + "' (" + node.op +
                    ") can't be trained: it is no float32 Variable");
      const auto is_same = [&](const Trained& other) { return other.variable == variable; };
      if (std::any_of(trained_.begin(), trained_.end(), is_same))
        refuseGraph("the variable '" + node.name + "' is listed twice");
      Trained trained{variable, variable, std::nullopt};
      wantNoSlots(node);
      const Node* const look_up =
          updatesRows(spec_) ? lookUpOf(graph_, variable, is_behind) : nullptr;
      if (look_up != nullptr) {
        trained.by = {look_up->id};
        trained.indices = look_up->inputs[1];
      }
      trained_.push_back(trained);
    }
  }

  // Checked before any node is added, as a slot that is left over would refuse the next try.
  void wantNoSlots(const Node& variable) const {
    if (options_.replicas && graph_.find(variable.name + kVersionSuffix) != nullptr)
      refuseGraph("the variable '" + variable.name +
                  "' has synchronous replicas already: minimize each variable once");
    for (uint32_t slot = 0; slot < slotCount(spec_); ++slot) {
      const std::string name = slotOf(variable, slot);
      if (graph_.find(name) != nullptr)
        refuseGraph(fmt::format(
            "the variable '{}' has the slot '{}' already: minimize each variable once, of "
            "several losses their sum",
            variable.name, name));
      if (name == options_.global_step)
        refuseGraph("'" + name + "' can't count steps: it is the name of a slot of the variable '" +
                    variable.name + "'; give the counter another name");
    }
  }

  // A decision counts the step for all variables of its loss, so nothing else may count it.
  void wantOwnCounter() const {
    const Node* const counter = graph_.find(options_.global_step);
    if (counter == nullptr) return;
    for (const Node& node : graph_.nodes()) {
      const bool is_replicas = node.op == graph::kArriveOp;
      if (!is_replicas && (!options_.replicas || node.op != "AssignAdd")) continue;
      if (node.inputs.at(0).node != counter->id) continue;
      refuseGraph(fmt::format(
          "'{}' counts the steps of another loss ('{}'), {}: minimize the sum of the losses, or "
          "give each its own global_step",
          counter->name, node.name,
          is_replicas ? "of synchronous replicas" : "and synchronous replicas share it with none"));
    }
  }

  std::string slotOf(const Node& variable, uint32_t slot) const {
    return variable.name + "/" + slotName(spec_, slot);
  }

  // Returns the counter of steps.
  Output globalStep() {
    const std::string& name = options_.global_step;
    if (const Node* const known = graph_.find(name)) {
      const bool is_counter = known->op == "Variable" && known->outputs[0].dtype == DType::kInt64;
      if (is_counter) return {known->id};
      refuseGraph(
          "node '" + name + "' (" + known->op +
          ") can't count steps: it is no Variable of dtype int64; give the counter another name");
    }
    return {graph_.addNode({.name = name,
                            .op = "Variable",
                            .inputs = {},
                            .attributes = {{"shape", Shape()},
                                           {"dtype", DType::kInt64},
                                           {"initializer", std::string("zeros")}},
                            .device = graph_.node(trained_[0].variable.node).device})};
  }

  void differentiate() {
    std::vector<Output> by;
    for (const Trained& trained : trained_) by.push_back(trained.by);
    const std::vector<Output> gradients = graph::addGradients(graph_, loss_, by);
    DTF_CHECK(gradients.size() == trained_.size());
    for (size_t i = 0; i < gradients.size(); ++i) trained_[i].gradient = gradients[i];
  }

  // Clips the gradients where the loss is computed. Returns their norm.
  Output clip() {
    std::vector<Output> inputs;
    std::string sparse;
    for (size_t i = 0; i < trained_.size(); ++i) {
      inputs.push_back(trained_[i].gradient);
      if (!trained_[i].indices) continue;
      inputs.push_back(*trained_[i].indices);
      sparse += (sparse.empty() ? "" : ", ") + std::to_string(i);
    }
    const NodeId clipped =
        add("ClipByGlobalNorm", "/clip", std::move(inputs),
            {{"clip_norm", spec_.clip_by_global_norm}, {"sparse", std::move(sparse)}},
            graph_.node(loss_.node).device);
    int32_t at = 0;
    for (Trained& trained : trained_) trained.gradient = {clipped, at++};
    return {clipped, at};
  }

  // Returns the update of one variable, by its optimizer, on its device.
  NodeId update(const Trained& trained, Output step) {
    std::vector<Output> inputs = {trained.variable};
    for (uint32_t slot = 0; slot < slotCount(spec_); ++slot)
      inputs.push_back(addSlot(trained.variable, slot));
    inputs.push_back(trained.gradient);
    if (trained.indices) inputs.push_back(*trained.indices);
    inputs.push_back(step);
    const Node& variable = graph_.node(trained.variable.node);
    const std::string device = variable.device;
    return add(trained.indices ? "ApplySparseOptimizer" : "ApplyOptimizer",
               "/update_" + variable.name, std::move(inputs),
               {{"optimizer", encodeOptimizer(spec_)}}, device);
  }

  // Each client's gradient goes to its variable, then the client arrives at the global step, which
  // decides; then each variable takes the step, or has taken it already.
  void addReplicas(Minimized& made, const SyncReplicas& replicas) {
    const Attributes rank = {{"rank", replicas.rank}};
    const Output ticket{add("SyncReplicasTicket", "/ticket", {made.global_step}, rank)};
    std::vector<Output> versions, arrival = {made.global_step, ticket};
    for (const Trained& trained : trained_) {
      versions.push_back(addVersion(trained.variable));
      arrival.push_back(accumulate(trained, versions.back(), ticket, rank));
    }
    const std::string device = graph_.node(made.global_step.node).device;
    const NodeId arrived = add("SyncReplicasArrive", "/arrive", std::move(arrival),
                               {{"rank", replicas.rank},
                                {"replicas_to_aggregate", replicas.replicas_to_aggregate},
                                {"total_num_replicas", replicas.total_num_replicas},
                                {"variables", trainedText()}},
                               device);
    std::vector<NodeId> updates;
    for (size_t i = 0; i < trained_.size(); ++i)
      updates.push_back(take(trained_[i], versions[i], {arrived, 0}));
    made.accepted = {arrived, 1};
    made.train = {add("Identity", "", {{arrived, 2}}, {}, device, std::move(updates))};
    made.finish = add("SyncReplicasFinish", "/finish", {made.global_step}, {}, device);
    add("SyncReplicasPause", "/pause", {made.global_step}, {}, device);
    add("SyncReplicasResume", "/resume", {made.global_step}, {}, device);
  }

  // Clients with other variables, shapes or optimizers must not share a step; the order in which
  // they make the variables doesn't matter.
  std::string trainedText() const {
    std::vector<std::string> lines;
    for (const Trained& trained : trained_) {
      const Node& node = graph_.node(trained.variable.node);
      lines.push_back("\n'" + node.name + "' " + node.outputs[0].shape.str());
    }
    std::sort(lines.begin(), lines.end());
    std::string text = "by " + encodeOptimizer(spec_);
    for (const std::string& line : lines) text += line;
    return text;
  }

  Output addVersion(Output variable) {
    const Node of = graph_.node(variable.node);  // a copy: adding a node moves the original
    const std::string& shared = of.attribute<std::string>("shared_name");
    return {graph_.addNode(
        {.name = of.name + kVersionSuffix,
         .op = "Variable",
         .inputs = {},
         .attributes = {{"shape", Shape()},
                        {"dtype", DType::kInt64},
                        {"initializer", std::string("zeros")},
                        {"container", of.attribute<std::string>("container")},
                        {"shared_name", shared.empty() ? shared : shared + kVersionSuffix}},
         .device = of.device})};
  }

  // The version is read with the variable, when the step begins.
  Output accumulate(const Trained& trained, Output version, Output ticket,
                    const Attributes& attributes) {
    const Node& variable = graph_.node(trained.variable.node);
    const std::string name = variable.name, device = variable.device;
    std::vector<Output> inputs = {version, trained.gradient};
    if (trained.indices) inputs.push_back(*trained.indices);
    inputs.push_back(version);
    inputs.push_back(ticket);
    return {add(trained.indices ? "SparseAccumulatorApplyGradient" : "AccumulatorApplyGradient",
                "/gradient_" + name, std::move(inputs), attributes, device)};
  }

  NodeId take(const Trained& trained, Output version, Output decision) {
    std::vector<Output> inputs = {trained.variable};
    for (uint32_t slot = 0; slot < slotCount(spec_); ++slot)
      inputs.push_back(addSlot(trained.variable, slot));
    inputs.push_back(version);
    inputs.push_back(decision);
    const Node& variable = graph_.node(trained.variable.node);
    const std::string name = variable.name, device = variable.device;
    return add("ApplyAccumulated", "/update_" + name, std::move(inputs),
               {{"optimizer", encodeOptimizer(spec_)}, {"sparse", trained.indices.has_value()}},
               device);
  }

  Output addSlot(Output variable, uint32_t slot) {
    const Node of = graph_.node(variable.node);  // a copy: adding a node moves the original
    const std::string suffix = std::string("/").append(slotName(spec_, slot));
    const std::string& shared = of.attribute<std::string>("shared_name");
    Attributes attributes = {{"shape", of.outputs[0].shape},
                             {"initializer", slotInitializer(of, slot)},
                             {"container", of.attribute<std::string>("container")},
                             {"shared_name", shared.empty() ? shared : shared + suffix}};
    if (isMovingAverage(spec_, slot)) attributes.emplace("stream", streamOf(of));
    return {graph_.addNode({.name = slotOf(of, slot),
                            .op = "Variable",
                            .inputs = {},
                            .attributes = std::move(attributes),
                            .device = of.device})};
  }

  std::string slotInitializer(const Node& variable, uint32_t slot) const {
    if (isMovingAverage(spec_, slot)) return variable.attribute<std::string>("initializer");
    const float value = initialSlotValue(spec_, slot);
    if (value == 0) return "zeros";
    return fmt::format("{}{}", graph::kConstantInitializer, value);
  }

  // An average starts as its variable: with the same numbers.
  int64_t streamOf(const Node& variable) const {
    const int64_t own = variable.attribute<int64_t>("stream");
    return own != 0 ? own : graph::variablePlace(graph_, variable.id) + 1;
  }

  Graph& graph_;
  const Output loss_;
  const cluster::OptimizerSpec& spec_;
  const MinimizeOptions& options_;
  const std::string name_;
  std::vector<Trained> trained_;
};

}  // namespace

Minimized minimize(Graph& graph, Output loss, const cluster::OptimizerSpec& spec,
                   const MinimizeOptions& options) {
  if (options.replicas) checkReplicas(*options.replicas);
  validateOptimizer(spec);
  graph.spec(loss);  // checks that it exists
  return Minimizer(graph, loss, spec, options).run();
}

}  // namespace dtf::optimizer
