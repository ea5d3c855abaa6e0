#include "common/engine/part_program.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/graph/graph_copy.h"

namespace dtf::engine {

using graph::Graph;
using graph::Node;
using graph::NodeDef;
using graph::NodeId;
using graph::Output;

// Makes one program of a part.
// Borrows: everything it is given, for one construction of PartProgram.
class PartProgram::Maker {
 public:
  Maker(PartProgram& made, const Graph& part, const std::vector<Output>& fetches,
        runtime::Device& device, const runtime::KernelTable& kernels, const EdgeNumbers& edges)
      : made_(made), part_(part), device_(device), kernels_(kernels), edges_(edges) {
    for (const Node& node : part.nodes()) list(node);
    const std::vector<Segment> segments = cutIntoSegments(part, fetches);
    for (size_t i = 0; i < segments.size(); ++i) {
      for (size_t result = 0; result < segments[i].results.size(); ++result) {
        sources_[segments[i].results[result]] = {Source::Kind::kResult, i, result};
      }
    }
    for (const Segment& segment : segments) addPiece(segment);
    for (const Output& fetch : fetches) made_.fetches_.push_back(sourceOf(fetch));
    makeConstants();
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
      made_.variables_.push_back({node.name, node.outputs[0]});
    } else if (node.op == "_Recv") {
      sources_[output] = {Source::Kind::kArrival, made_.receives_.size()};
      const graph::TensorSpec& spec = node.outputs[0];
      made_.receives_.push_back(
          {edgeOf(node), node.attribute<std::string>("key"),
           static_cast<uint64_t>(spec.shape.elements()) * dtypeBytes(spec.dtype)});
    } else if (node.op == "_Pull" || node.op == "_Push" || node.op == "_PushSparse" ||
               graph::appliesGradient(node)) {
      throw Error(ErrorCode::kBadConfig, "node '" + node.name + "' (" + node.op +
                                             "): parameter servers and their optimizers take part "
                                             "in training jobs, not in the steps of a session");
    }
  }

  // Constants are known where they are read; passed on as they are, they need memory.
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

  void makeConstants() {
    if (constants_.empty()) return;
    graph::GraphCopy copy(part_);
    std::vector<Output> fetches;
    for (const Output& constant : constants_) {
      copy.add(part_.node(constant.node));
      fetches.push_back(copy.map(constant));
    }
    made_.constants_ = runtime::compile(copy.copy(), fetches, device_, kernels_);
    made_.constants_->run();
  }

  void addPiece(const Segment& segment) {
    Piece piece;
    piece.after = segment.after;
    for (const NodeId receive : segment.receives) {
      piece.receives.push_back(sources_.at({receive}).index);
    }
    Program program;
    if (!segment.nodes.empty()) compile(segment, program);
    if (program.step) piece.kernels = program.step->plan().kernels.size();
    for (const NodeId send : segment.sends) {
      const Node& node = part_.node(send);
      program.sends.emplace_back(edgeOf(node), sourceOf(node.inputs[0]));
    }
    made_.pieces_.push_back(std::move(piece));
    made_.programs_.push_back(std::move(program));
  }

  void compile(const Segment& segment, Program& program) {
    const std::set<NodeId> members(segment.nodes.begin(), segment.nodes.end());
    graph::GraphCopy copy(part_);
    std::vector<std::pair<std::string, Source>> imports;  // by the name that they have in the copy
    for (const NodeId id : segment.nodes) {
      const Node& node = part_.node(id);
      for (const Output& input : node.inputs) {
        if (!members.contains(input.node)) import(input, copy, imports);
      }
      // What lies in another segment has ended before this one begins.
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
      copy.add(node);
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

  // A compiled step runs what its fetches need. Here all nodes shall run, as a target may be one, or
  // somebody on another device may wait for one.
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
  std::map<Output, Source> sources_;
  std::vector<Output> constants_;  // that are passed on
};

PartProgram::PartProgram(const Graph& part, const std::vector<Output>& fetches,
                         runtime::Device& device, const runtime::KernelTable& kernels,
                         const EdgeNumbers& edges) {
  const Maker made(*this, part, fetches, device, kernels, edges);
  DTF_CHECK(pieces_.size() == programs_.size() && fetches_.size() == fetches.size());
}
PartProgram::~PartProgram() = default;
PartProgram::PartProgram(PartProgram&&) noexcept = default;

Bytes PartProgram::bytesOf(const Source& source, const PartInputs& inputs) const {
  switch (source.kind) {
    case Source::Kind::kFeed:
      return inputs.feeds[source.index];
    case Source::Kind::kVariable:
      return inputs.variables[source.index];
    case Source::Kind::kArrival:
      return inputs.arrivals[source.index].bytes;
    case Source::Kind::kConstant:
      return constants_->fetchBytes(static_cast<int>(source.index));
    case Source::Kind::kResult:
      return programs_[source.index].step->fetchBytes(static_cast<int>(source.result));
  }
  return {};
}

std::vector<PartProgram::Send> PartProgram::run(size_t piece, const PartInputs& inputs) {
  DTF_CHECK(piece < programs_.size());
  DTF_CHECK(inputs.feeds.size() == feeds_.size() && inputs.variables.size() == variables_.size() &&
            inputs.arrivals.size() == receives_.size());
  Program& program = programs_[piece];
  for (const Binding& binding : program.bindings) {
    const Bytes bytes = bytesOf(binding.source, inputs);
    if (binding.is_parameter) {
      program.step->bindParameter(binding.handle, reinterpret_cast<const float*>(bytes.data()));
    } else {
      program.step->bindInput(binding.handle, bytes.data());
    }
  }
  if (program.step) program.step->run();
  std::vector<Send> sends;
  for (const auto& [edge, source] : program.sends) sends.push_back({edge, bytesOf(source, inputs)});
  return sends;
}

Bytes PartProgram::fetch(size_t i, const PartInputs& inputs) const {
  DTF_CHECK(i < fetches_.size());
  return bytesOf(fetches_[i], inputs);
}

}  // namespace dtf::engine
