// The construction of a PartProgram: its segments, compiled.

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/engine/part_program.h"
#include "common/graph/graph_copy.h"

namespace dtf::engine {

using graph::Graph;
using graph::Node;
using graph::NodeDef;
using graph::NodeId;
using graph::Output;

// Makes one program of a part.
// Borrows: all constructor arguments, for one construction of PartProgram.
class PartProgram::Maker {
 public:
  Maker(PartProgram& made, const Graph& part, const std::vector<Output>& fetches,
        runtime::Device& device, const runtime::KernelTable& kernels, const EdgeNumbers& edges,
        runtime::ComputePool* pool)
      : made_(made), part_(part), device_(device), kernels_(kernels), edges_(edges), pool_(pool) {
    for (const Node& node : part.nodes()) list(node);
    made_.uses_.resize(made_.variables_.size());
    const std::vector<Segment> segments = cutIntoSegments(part, fetches);
    for (size_t i = 0; i < segments.size(); ++i) {
      for (size_t result = 0; result < segments[i].results.size(); ++result) {
        sources_[segments[i].results[result]] = {Source::Kind::kResult, i, result};
      }
    }
    for (const Segment& segment : segments) addPiece(segment);
    for (const Output& fetch : fetches) {
      made_.fetches_.push_back(sourceOf(fetch));
      keep(fetch);
    }
    makeConstants();
    addReader();
  }

 private:
  uint32_t edgeOf(const Node& node) const {
    const auto known = edges_.find(node.attribute<std::string>("key"));
    DTF_CHECK_MSG(known != edges_.end(), node.name);
    return known->second;
  }

  void list(const Node& node) {
    const Output output{node.id};
    if (node.op == "Placeholder") {
      sources_[output] = {Source::Kind::kFeed, made_.feeds_.size()};
      made_.feeds_.push_back({node.name, node.outputs[0]});
    } else if (node.op == "Variable") {
      sources_[output] = {Source::Kind::kVariable, made_.variables_.size()};
      made_.variables_.push_back({ResourceKey::of(node), node.name, node.outputs[0]});
    } else if (graph::isQueue(node)) {
      queue_of_[node.id] = made_.queues_.size();
      made_.queues_.push_back({ResourceKey::of(node), node.name, graph::queueSpec(node)});
    } else if (node.op == "_Recv") {
      sources_[output] = {Source::Kind::kArrival, made_.receives_.size()};
      const graph::TensorSpec& spec = node.outputs[0];
      made_.receives_.push_back({edgeOf(node), node.attribute<std::string>("key"), spec.bytes()});
    } else if (node.op == "_Pull" || node.op == "_Push" || node.op == "_PushSparse" ||
               graph::appliesGradient(node)) {
      throw Error(ErrorCode::kBadConfig, "node '" + node.name + "' (" + node.op +
                                             "): parameter servers and their optimizers take part "
                                             "in training jobs, not in the steps of a session");
    }
  }

  // Constants are known to their readers; only constants that are passed on need memory.
  Source sourceOf(const Output& output) {
    const Node& node = part_.node(output.node);
    if (node.op == "Const" && isSource(node) && !sources_.contains(output)) {
      sources_[output] = {Source::Kind::kConstant, constants_.size()};
      constants_.push_back(output);
    }
    const auto known = sources_.find(output);
    DTF_CHECK_MSG(known != sources_.end(), node.name);
    return known->second;
  }

  // Reads fetched variables and constants in a part where nothing runs.
  void addReader() {
    const bool reads = std::any_of(made_.uses_.begin(), made_.uses_.end(),
                                   [](const Use& use) { return use.is_read; });
    if ((reads || !constants_.empty()) && made_.pieces_.empty()) addPiece({});
  }

  void makeConstants() {
    if (constants_.empty()) return;
    graph::GraphCopy copy(part_);
    std::vector<Output> fetches;
    for (const Output& constant : constants_) {
      copy.add(part_.node(constant.node));
      fetches.push_back(copy.map(constant));
    }
    made_.constants_ = runtime::compile(copy.copy(), fetches, device_, kernels_);
  }

  void addPiece(const Segment& segment) {
    Piece piece;
    piece.after = segment.after;
    for (const NodeId receive : segment.receives) {
      piece.receives.push_back(sources_.at({receive}).index);
    }
    Program program;
    if (segment.action && graph::actsOnQueue(part_.node(*segment.action))) {
      prepareQueueAction(part_.node(*segment.action), segment, program);
      piece.may_wait = true;
    } else if (segment.action && graph::waitsForReplicas(part_.node(*segment.action))) {
      prepareArrival(part_.node(*segment.action), segment, program);
      piece.may_wait = true;
    } else if (segment.action && isHostAct(part_.node(*segment.action))) {
      prepareHostAction(part_.node(*segment.action), segment, program);
    } else if (segment.action) {
      compileAction(part_.node(*segment.action), segment, program);
    } else if (!segment.nodes.empty()) {
      compile(segment, program);
    }
    countReads(program);
    for (const Output& result : segment.results) keep(result);
    if (program.step) piece.kernels = program.step->plan().kernels.size();
    for (const NodeId send : segment.sends) {
      const Node& node = part_.node(send);
      program.sends.emplace_back(edgeOf(node), sourceOf(node.inputs[0]));
      made_.send_keys_[edgeOf(node)] = node.attribute<std::string>("key");
      keep(node.inputs[0]);
    }
    made_.pieces_.push_back(std::move(piece));
    made_.programs_.push_back(std::move(program));
  }

  void countReads(Program& program) {
    const auto count = [&](const Source& source) {
      if (source.kind != Source::Kind::kVariable) return;
      const size_t variable = source.index;
      if (std::find(program.reads.begin(), program.reads.end(), variable) != program.reads.end())
        return;
      program.reads.push_back(variable);
      made_.uses_[variable].is_read = true;
      ++made_.uses_[variable].readers;
    };
    for (const Binding& binding : program.bindings) count(binding.source);
    if (program.host)
      for (const Source& input : program.host->inputs) count(input);
    if (program.queue)
      for (const Source& input : program.queue->inputs) count(input);
    if (program.replicas)
      for (const Source& input : program.replicas->inputs) count(input);
  }

  // Keeps a variable's value that a piece returns unchanged.
  void keep(Output output) {
    const Node* node = &part_.node(output.node);
    while (node->op == "Identity" || node->op == "Reshape")
      node = &part_.node(node->inputs[0].node);
    if (node->op != "Variable") return;
    Use& use = made_.uses_[sources_.at({node->id}).index];
    use.is_read = use.is_kept = true;
  }

  // Needs no program: its inputs are available, and the queue has its outputs.
  void prepareQueueAction(const Node& node, const Segment& segment, Program& program) {
    const auto queue = queue_of_.find(node.inputs[0].node);
    DTF_CHECK_MSG(queue != queue_of_.end(), node.name);
    QueueAction action{queue->second, QueueAct(part_, node), {}, {}};
    for (size_t i = 1; i < node.inputs.size(); ++i)
      action.inputs.push_back(sourceOf(node.inputs[i]));
    for (const Output& result : segment.results)
      action.outputs.push_back(static_cast<size_t>(result.index));
    program.queue.emplace(std::move(action));
  }

  // Returns the index of a variable that the node acts on.
  size_t variableOf(const Node& node, const Output& input) const {
    const auto variable = sources_.find(input);
    if (variable != sources_.end() && variable->second.kind == Source::Kind::kVariable)
      return variable->second.index;
    throw Error(ErrorCode::kBadConfig, "node '" + node.name + "' (" + node.op + "): its input '" +
                                           part_.node(input.node).name +
                                           "' is no Variable of its device");
  }

  // Likewise: the barrier beside the variable has its outputs.
  void prepareArrival(const Node& node, const Segment& segment, Program& program) {
    ReplicasAction action{variableOf(node, node.inputs[0]), ArriveAct(node), {}, {}};
    for (size_t i = 1; i < node.inputs.size(); ++i)
      action.inputs.push_back(sourceOf(node.inputs[i]));
    for (const Output& result : segment.results)
      action.outputs.push_back(static_cast<size_t>(result.index));
    program.replicas.emplace(std::move(action));
  }

  // Needs no program: the engine computes it.
  void prepareHostAction(const Node& node, const Segment& segment, Program& program) {
    HostAction action{makeHostAct(part_, node, pool_), {}, {}, {}};
    for (const Output& variable : graph::variablesOf(node))
      action.variables.push_back(variableOf(node, variable));
    for (size_t i = action.variables.size(); i < node.inputs.size(); ++i)
      action.inputs.push_back(sourceOf(node.inputs[i]));
    for (const Output& result : segment.results)
      action.outputs.push_back(static_cast<size_t>(result.index));
    program.host.emplace(std::move(action));
  }

  // Compiles a program for the action alone: its result goes to the memory of the variable's new
  // value.
  void compileAction(const Node& node, const Segment& segment, Program& program) {
    Action action{.variable = variableOf(node, node.inputs[0]),
                  .needs_value = node.op != "Assign",
                  .is_read = !segment.results.empty()};
    if (node.op == "ReadVariable") {
      program.action = action;
      return;
    }
    Graph whole(part_.catalog());
    NodeDef def{.name = node.name, .op = node.op, .inputs = {}, .attributes = node.attributes};
    std::vector<std::string> inputs;
    for (const Output& input : node.inputs) {
      const graph::TensorSpec& spec = part_.spec(input);
      inputs.push_back("input " + std::to_string(inputs.size()) + " of " + node.name);
      def.inputs.push_back(
          {whole.addNode({.name = inputs.back(),
                          .op = "Placeholder",
                          .inputs = {},
                          .attributes = {{"dtype", spec.dtype}, {"shape", spec.shape}}})});
    }
    const Output changed{whole.addNode(std::move(def))};
    whole.addNode({.name = whole.uniqueName("the end"),
                   .op = "_Push",
                   .inputs = {changed},
                   .attributes = {{"variable", std::string("variable")}}});
    program.step = runtime::compile(whole, {}, device_, kernels_);
    action.before = program.step->input(inputs[0]);
    action.after = program.step->gradient("variable");
    program.action = action;
    for (size_t i = 1; i < inputs.size(); ++i)
      program.bindings.push_back({program.step->input(inputs[i]), false, sourceOf(node.inputs[i])});
  }

  void compile(const Segment& segment, Program& program) {
    const std::set<NodeId> members(segment.nodes.begin(), segment.nodes.end());
    graph::GraphCopy copy(part_);
    std::vector<std::pair<std::string, Source>> imports;  // by their names in the copy
    for (const NodeId id : segment.nodes) {
      const Node& node = part_.node(id);
      for (const Output& input : node.inputs) {
        if (!members.contains(input.node)) import(input, copy, imports);
      }
      // Nodes of another segment have ended before this one begins.
      NodeDef def{.name = node.name,
                  .op = node.op,
                  .inputs = {},
                  .attributes = node.attributes,
                  .control_inputs = {},
                  .device = node.device};
      for (const Output& input : node.inputs) def.inputs.push_back(copy.map(input));
      for (const NodeId before : node.control_inputs) {
        if (members.contains(before)) def.control_inputs.push_back(copy.map(before));
      }
      copy.add(node.id, std::move(def));
    }
    std::vector<Output> fetches;
    for (const Output& result : segment.results) fetches.push_back(copy.map(result));
    Graph whole = copy.take();
    addEnd(whole, fetches);
    program.step = runtime::compile(whole, fetches, device_, kernels_);
    for (const auto& [name, source] : imports) {
      const bool is_parameter = source.kind == Source::Kind::kVariable;
      program.bindings.push_back(
          {is_parameter ? program.step->parameter(name) : program.step->input(name), is_parameter,
           source});
    }
  }

  void import(const Output& input, graph::GraphCopy& copy,
              std::vector<std::pair<std::string, Source>>& imports) {
    if (copy.has(input)) return;
    const Node& node = part_.node(input.node);
    if (isSource(node)) {
      // Available from the beginning of the step, so it waits for nothing.
      copy.add(node.id, {.name = node.name,
                         .op = node.op,
                         .inputs = {},
                         .attributes = node.attributes,
                         .control_inputs = {},
                         .device = node.device});
      if (node.op != "Const") imports.emplace_back(node.name, sourceOf(input));
      return;
    }
    const graph::TensorSpec& spec = part_.spec(input);
    NodeDef def;
    def.name = part_.uniqueName(node.name + ":" + std::to_string(input.index));
    def.op = "Placeholder";
    def.attributes = {{"dtype", spec.dtype}, {"shape", spec.shape}};
    imports.emplace_back(def.name, sourceOf(input));
    copy.addFor(input, std::move(def));
  }

  // Adds fetches for unread nodes: a compiled step only runs nodes needed by its fetches, but all
  // nodes must run here, since they may be targets or control inputs on another device.
  void addEnd(Graph& whole, std::vector<Output>& fetches) const {
    std::vector<bool> read(whole.nodes().size(), false);
    for (const Node& node : whole.nodes()) {
      for (const Output& input : node.inputs) read[static_cast<size_t>(input.node.value)] = true;
    }
    for (const Output& fetch : fetches) read[static_cast<size_t>(fetch.node.value)] = true;
    std::vector<NodeId> unread;
    for (const Node& node : whole.nodes()) {
      if (!read[static_cast<size_t>(node.id.value)]) unread.push_back(node.id);
    }
    if (unread.empty()) return;
    NodeDef end;
    end.name = whole.uniqueName("end of the segment");
    end.op = "Const";
    end.attributes = {{"dtype", DType::kFloat32}, {"shape", Shape()}, {"value", 0.0}};
    end.control_inputs = std::move(unread);
    fetches.push_back({whole.addNode(std::move(end))});
  }

  PartProgram& made_;
  const Graph& part_;
  runtime::Device& device_;
  const runtime::KernelTable& kernels_;
  const EdgeNumbers& edges_;
  runtime::ComputePool* const pool_;  // null: one thread
  std::map<Output, Source> sources_;
  std::map<NodeId, size_t> queue_of_;  // by FIFOQueue: index into queues_
  std::vector<Output> constants_;      // that are passed on
};

PartProgram::PartProgram(const Graph& part, const std::vector<Output>& fetches,
                         runtime::Device& device, const runtime::KernelTable& kernels,
                         const EdgeNumbers& edges, runtime::ComputePool* pool) {
  const Maker made(*this, part, fetches, device, kernels, edges, pool);
  DTF_CHECK(pieces_.size() == programs_.size() && fetches_.size() == fetches.size());
}

}  // namespace dtf::engine
