#include "common/graph/queue.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/base/text.h"
#include "common/graph/shape_functions.h"

namespace dtf::graph {
namespace {

constexpr std::array<std::string_view, 4> kWaiting = {"QueueEnqueue", "QueueEnqueueMany",
                                                      "QueueDequeue", "QueueDequeueMany"};
constexpr std::array<std::string_view, 2> kPrompt = {"QueueSize", "QueueClose"};

bool isOneOf(std::span<const std::string_view> ops, std::string_view op) {
  return std::find(ops.begin(), ops.end(), op) != ops.end();
}

bool isQueueOp(std::string_view op) {
  return isOneOf(kWaiting, op) || isOneOf(kPrompt, op);
}

[[noreturn]] void refuse(const std::string& why) {
  throw Error(ErrorCode::kBadConfig, why);
}

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

DType dtypeNamed(std::string_view name) {
  for (const DType dtype : {DType::kFloat32, DType::kUInt8, DType::kInt32, DType::kInt64})
    if (dtypeName(dtype) == name) return dtype;
  refuse("component_types has '" + std::string(name) +
         "' in it; it is a list like 'float32, int32', of float32, uint8, int32 and int64");
}

int64_t dimOf(const std::string& text) {
  const std::string_view digits = trimmed(text);
  int64_t dim = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), dim);
  if (failed != std::errc() || end != digits.data() + digits.size())
    refuse("shapes has the dimension '" + text + "'; it is a list like '[28, 28], []'");
  return dim;
}

void wantRoomForOneMore(size_t components) {
  if (components == kQueueComponentsMax)
    refuse("its elements have more than " + std::to_string(kQueueComponentsMax) +
           " components, which is the most; join some, or use several queues");
}

// Parses "[28, 28], []".
std::vector<Shape> shapesOf(std::string_view text) {
  std::vector<Shape> shapes;
  for (std::string_view rest = trimmed(text); !rest.empty();) {
    wantRoomForOneMore(shapes.size());
    const size_t end = rest.find(']');
    if (rest[0] != '[' || end == std::string_view::npos)
      refuse("shapes is '" + std::string(text) + "'; it is a list like '[28, 28], []'");
    std::vector<int64_t> dims;
    const std::string_view inside = trimmed(rest.substr(1, end - 1));
    if (!inside.empty())
      for (const std::string& dim : split(inside, ',')) dims.push_back(dimOf(dim));
    shapes.emplace_back(std::move(dims));
    rest = trimmed(rest.substr(end + 1));
    if (rest.empty()) break;
    if (rest[0] != ',') refuse("shapes has no ',' after '" + shapes.back().str() + "'");
    rest = trimmed(rest.substr(1));
    if (rest.empty()) refuse("shapes ends with a ','");
  }
  return shapes;
}

void refuseReaders(const Graph& graph, const NodeDef& def) {
  for (size_t i = isQueueOp(def.op) ? 1 : 0; i < def.inputs.size(); ++i) {
    const Node& source = graph.node(def.inputs[i].node);
    if (isQueue(source))
      refuse("its input " + std::to_string(i) + " is the queue '" + source.name +
             "', which has no value: QueueDequeue takes its elements");
  }
}

}  // namespace

bool isQueue(const Node& node) {
  return node.op == "FIFOQueue";
}

bool actsOnQueue(const Node& node) {
  return isQueueOp(node.op);
}

bool mayAwaitQueue(const Node& node) {
  return isOneOf(kWaiting, node.op);
}

std::vector<TensorSpec> queueComponents(const Attributes& attributes) {
  std::vector<TensorSpec> components;
  const auto& types = get<std::string>(attributes, "component_types");
  std::vector<Shape> shapes = shapesOf(get<std::string>(attributes, "shapes"));
  for (const std::string& type : split(types, ',')) {
    wantRoomForOneMore(components.size());
    components.push_back({dtypeNamed(trimmed(type)), {}});
  }
  if (components.size() != shapes.size())
    refuse("it has " + std::to_string(components.size()) + " component_types and " +
           std::to_string(shapes.size()) + " shapes: each component has one of both");
  for (size_t i = 0; i < shapes.size(); ++i) components[i].shape = std::move(shapes[i]);
  return components;
}

QueueSpec queueSpec(const Node& queue) {
  return {queueComponents(queue.attributes), queue.attribute<int64_t>("capacity")};
}

void joinQueue(const Graph& graph, NodeDef& def) {
  refuseReaders(graph, def);
  if (!isQueueOp(def.op)) return;
  if (def.inputs.empty()) refuse("its first input must be a FIFOQueue");
  const Node& queue = graph.node(def.inputs[0].node);
  if (!isQueue(queue))
    refuse("its first input '" + queue.name + "' is a " + queue.op + ", it must be a FIFOQueue");
  for (const char* const list : {"component_types", "shapes"}) {
    auto& own = std::get<std::string>(def.attributes.at(list));
    const auto& its = queue.attribute<std::string>(list);
    if (!own.empty() && own != its)
      refuse("its " + std::string(list) + " are '" + own + "', but for the queue '" + queue.name +
             "' are '" + its + "'; leave them out");
    own = its;
  }
  const int64_t capacity = queue.attribute<int64_t>("capacity");
  if (def.op == "QueueDequeueMany" && std::get<int64_t>(def.attributes.at("n")) > capacity)
    refuse("it waits for " + std::to_string(std::get<int64_t>(def.attributes.at("n"))) +
           " elements, but the queue '" + queue.name + "' never has more than " +
           std::to_string(capacity));
}

}  // namespace dtf::graph
