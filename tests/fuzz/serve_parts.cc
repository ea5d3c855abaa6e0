#include "tests/fuzz/serve_parts.h"

#include <iterator>
#include <string>

#include "common/base/error.h"
#include "common/graph/device_name.h"
#include "common/graph/queue.h"
#include "common/graph/standard_ops.h"
#include "common/serving/served_part.h"
#include "tests/fuzz/serve_world.h"

namespace dtf::fuzz {

namespace {

using graph::Output;

constexpr size_t kNodesMax = 12;
constexpr uint8_t kQueueOpsFrom = 244, kWrongDeviceFrom = 252;  // of the byte that says a node's op
const char* const kNames[] = {"a", "b", "c"};

// One of the last nodes that has an output, or one that isn't there.
Output pick(Arguments& arguments, const graph::Graph& graph) {
  const uint8_t back = arguments.byte();
  if (graph.nodes().empty() || back >= 250) return {{back}, 0};
  const auto nodes = static_cast<uint32_t>(graph.nodes().size());
  return {{static_cast<int32_t>(nodes - 1 - back % nodes)}, 0};
}

graph::Attributes specOf(DType dtype, Shape shape) {
  return {{"dtype", dtype}, {"shape", std::move(shape)}};
}

Shape shapeOf(Arguments& arguments) {
  return {elementsOf(arguments)};
}

void addVariable(Arguments& arguments, graph::NodeDef& def) {
  def.op = "Variable";
  def.attributes = {{"shape", shapeOf(arguments)},
                    {"initializer", std::string("zeros")},
                    {"shared_name", std::string(kNames[arguments.byte() % 3])},
                    {"container", std::string(kNames[arguments.byte() % 3])}};
}

void addTransfer(Arguments& arguments, const char* op, DType dtype, Shape shape,
                 engine::TaskPart& part, graph::NodeDef& def) {
  def.op = op;
  def.attributes = specOf(dtype, std::move(shape));
  const uint8_t peer = arguments.byte(), edge = arguments.byte();
  def.attributes.emplace("key", std::string(1, static_cast<char>('a' + edge % 16)));
  part.edges.push_back({{static_cast<int32_t>(part.graph.nodes().size())},
                        edge % (kEdges + (peer >= 250 ? 1 : 0)),
                        servingTask(peer % (kServing + 1))});
}

// A queue of numbers or of vectors, or an op on a node that may be a queue.
void addQueueNode(Arguments& arguments, const graph::Graph& graph, graph::NodeDef& def) {
  static const char* const kOps[] = {"FIFOQueue",    "QueueEnqueue",     "QueueEnqueueMany",
                                     "QueueDequeue", "QueueDequeueMany", "QueueSize",
                                     "QueueClose"};
  def.op = kOps[arguments.byte() % std::size(kOps)];
  if (def.op == "FIFOQueue") {
    def.attributes = {{"component_types", std::string("float32")},
                      {"shapes", arguments.byte() % 2 == 1 ? "[]" : shapeOf(arguments).str()},
                      {"capacity", int64_t{1} + arguments.byte() % 4},
                      {"shared_name", std::string(kNames[arguments.byte() % 3])},
                      {"container", std::string(kNames[arguments.byte() % 3])}};
    return;
  }
  def.inputs = {pick(arguments, graph)};
  if (def.op.starts_with("QueueEnqueue")) def.inputs.push_back(pick(arguments, graph));
  if (def.op == "QueueDequeueMany") def.attributes = {{"n", int64_t{1} + arguments.byte() % 4}};
  if (def.op == "QueueClose")
    def.attributes = {{"cancel_pending_enqueues", arguments.byte() % 2 == 0}};
}

// Errors: kBadConfig for a node that no graph can have.
void addNode(Arguments& arguments, engine::TaskPart& part) {
  const graph::Graph& graph = part.graph;
  graph::NodeDef def;
  def.name = std::string("n").append(std::to_string(graph.nodes().size()));
  def.device = graph::fullDevice(part.task).str();
  const uint8_t op = arguments.byte();
  if (op >= kQueueOpsFrom && op < kWrongDeviceFrom) {
    addQueueNode(arguments, graph, def);
    part.graph.addNode(std::move(def));
    return;
  }
  switch (op % 9) {
    case 0:
      def.op = "Placeholder";
      def.attributes = specOf(op < 200 ? DType::kFloat32 : DType::kInt32, shapeOf(arguments));
      break;
    case 1:
      addVariable(arguments, def);
      break;
    case 2:
      def.op = "Scale";
      def.inputs = {pick(arguments, graph)};
      def.attributes = {{"factor", 2.0}};
      break;
    case 3:
    case 4:
      def.op = op % 9 == 3 ? "Add" : "AssignAdd";
      def.inputs = {pick(arguments, graph), pick(arguments, graph)};
      break;
    case 5: {
      const Output sent = pick(arguments, graph);
      const bool is_there = sent.node.value < static_cast<int32_t>(graph.nodes().size());
      const graph::TensorSpec spec = is_there && !graph.node(sent.node).outputs.empty()
                                         ? graph.spec(sent)
                                         : graph::TensorSpec{DType::kFloat32, {1}};
      def.inputs = {sent};
      addTransfer(arguments, "_Send", spec.dtype, spec.shape, part, def);
      break;
    }
    case 6:
      addTransfer(arguments, "_Recv", DType::kFloat32, shapeOf(arguments), part, def);
      break;
    case 7:
      def.op = "Gather";
      def.inputs = {pick(arguments, graph), pick(arguments, graph)};
      break;
    default:
      def.op = "Assign";
      def.inputs = {pick(arguments, graph), pick(arguments, graph)};
      def.control_inputs = {pick(arguments, graph).node};
      break;
  }
  if (op >= kWrongDeviceFrom) def.device = op % 2 == 0 ? "" : graph::fullDevice(kHostile).str();
  part.graph.addNode(std::move(def));
}

}  // namespace

int64_t elementsOf(Arguments& arguments) {
  constexpr int64_t kSizes[] = {1, 2, 16, 1000, 100'000, 1 << 20};
  const uint8_t size = arguments.byte();
  return kSizes[size < 200 ? size % 3 : size % std::size(kSizes)];
}

std::shared_ptr<const engine::TaskPart> makePart(Arguments& arguments, TaskId self) {
  engine::TaskPart part{.task = self,
                        .graph = graph::Graph(graph::standardOps()),
                        .fetches = {},
                        .feeds = {},
                        .folded = {},
                        .edges = {},
                        .edges_total = kEdges};
  const uint8_t wrong = arguments.byte();
  for (size_t left = arguments.byte() % kNodesMax; left > 0; --left) {
    const size_t edges = part.edges.size();
    try {
      addNode(arguments, part);
    } catch (const Error&) {
      part.edges.resize(edges);
    }
  }
  for (const graph::Node& node : part.graph.nodes()) {
    if (node.op == "Placeholder") part.feeds.push_back(node.name);
    if (!node.outputs.empty() && (!graph::isQueue(node) || wrong == 251))
      part.fetches.push_back({node.id, 0});
  }
  if (wrong == 255) part.task = kHostile;
  if (wrong == 254 && !part.edges.empty()) part.edges.pop_back();
  if (wrong == 253 && !part.feeds.empty()) part.feeds.pop_back();
  if (wrong == 252 && !part.feeds.empty()) {
    Tensor folded(DType::kFloat32, shapeOf(arguments));
    part.folded.emplace(part.feeds.back(), std::move(folded));
    part.feeds.pop_back();
  }
  return std::make_shared<const engine::TaskPart>(std::move(part));
}

Known knownOf(const engine::TaskPart& part) {
  Known known;
  for (const std::string& feed : part.feeds)
    known.feeds.push_back(part.graph.find(feed)->outputs[0]);
  for (const engine::TaskPart::Edge& edge : part.edges) {
    const graph::Node& node = part.graph.node(edge.node);
    if (node.op == "_Recv") known.received[edge.number] = node.outputs[0].bytes();
  }
  return known;
}

wire::Processes processesOf(Arguments& arguments) {
  const uint8_t other = arguments.byte();
  wire::Processes processes;
  for (size_t which = 0; which <= kServing; ++which) {
    const TaskId task = servingTask(which);
    processes[task] = {incarnationOf(task).value + (other >= 200 && other % 3 == which)};
  }
  return processes;
}

void fillTensor(Arguments& arguments, const graph::TensorSpec& spec,
                schema::Tensor::Builder tensor) {
  const uint8_t wrong = arguments.byte();
  tensor.setDtype(wrong == 255 ? arguments.byte() : static_cast<uint8_t>(spec.dtype));
  const auto& dims = spec.shape.dims();
  auto shape = tensor.initShape(static_cast<uint32_t>(dims.size()));
  for (uint32_t i = 0; i < shape.size(); ++i)
    shape.set(i, wrong == 254 ? arguments.number<int64_t>() : dims[i]);
  const uint64_t bytes = static_cast<uint64_t>(spec.shape.elements()) * dtypeBytes(spec.dtype);
  fillBytes(arguments, bytes, [&](uint32_t blobs) { return tensor.initBytes(blobs); });
}

}  // namespace dtf::fuzz
