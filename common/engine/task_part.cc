#include "common/engine/task_part.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "common/base/check.h"
#include "common/base/checksum.h"
#include "common/base/error.h"
#include "common/graph/function.h"
#include "common/graph/queue.h"

namespace dtf::engine {
namespace {

using graph::Node;

// Adds every field with its length, so that different parts never look alike.
class Digest {
 public:
  void add(uint64_t number) { sum_.update(&number, sizeof number); }
  void add(std::string_view text) {
    add(text.size());
    sum_.update(text.data(), text.size());
  }
  void add(const Shape& shape) {
    add(static_cast<uint64_t>(shape.rank()));
    for (const int64_t dim : shape.dims()) add(static_cast<uint64_t>(dim));
  }
  void add(const graph::Attribute& attribute) {
    add(attribute.index());
    std::visit(
        [this](const auto& value) {
          using Value = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<Value, std::string>) {
            add(std::string_view(value));
          } else if constexpr (std::is_same_v<Value, double>) {
            sum_.update(&value, sizeof value);
          } else if constexpr (std::is_same_v<Value, Shape>) {
            add(value);
          } else if constexpr (std::is_same_v<Value, graph::FunctionRef>) {
            add(value != nullptr);
            if (value != nullptr) add(*value);
          } else {
            add(static_cast<uint64_t>(value));
          }
        },
        attribute);
  }
  void add(const graph::Function& function) {
    add(function.graph().nodes().size());
    for (const Node& node : function.graph().nodes()) add(node);
    add(function.parameters().size());
    for (const graph::NodeId parameter : function.parameters()) add(index(parameter));
    add(function.results().size());
    for (const graph::Output& result : function.results()) add(result);
  }
  void add(const Node& node) {
    add(std::string_view(node.name));
    add(std::string_view(node.op));
    add(std::string_view(node.device));
    add(node.inputs.size());
    for (const graph::Output& input : node.inputs) add(input);
    add(node.control_inputs.size());
    for (const graph::NodeId before : node.control_inputs) add(index(before));
    add(node.attributes.size());
    for (const auto& [name, value] : node.attributes) {
      add(std::string_view(name));
      add(value);
    }
  }
  void add(const graph::Output& output) {
    add(index(output.node));
    add(static_cast<uint64_t>(output.index));
  }
  void add(TaskId task) {
    add(static_cast<uint64_t>(task.job));
    add(uint64_t{task.index});
  }
  void add(const Tensor& tensor) {
    add(static_cast<uint64_t>(tensor.dtype()));
    add(tensor.shape());
    sum_.update(tensor.data(), tensor.bytes());
  }
  static uint64_t index(graph::NodeId node) { return static_cast<uint64_t>(node.value); }
  uint64_t value() const { return sum_.value(); }

 private:
  Checksum sum_;
};

[[noreturn]] void refuse(const Node& node, const std::string& why) {
  throw Error(ErrorCode::kBadConfig, "node '" + node.name + "' (" + node.op + "): " + why);
}

void checkDevices(const TaskPart& part, TaskId self,
                  const std::vector<graph::DeviceName>& devices) {
  std::set<std::string> known;
  for (const graph::DeviceName& device : devices) known.insert(device.str());
  for (const Node& node : part.graph.nodes()) {
    if (known.contains(node.device)) continue;
    refuse(node, "is to run on '" + node.device + "', which " + self.name() + " doesn't have");
  }
}

void checkEdges(const TaskPart& part) {
  std::set<uint32_t> numbers;
  std::set<std::string> keys;
  size_t at = 0;
  for (const Node& node : part.graph.nodes()) {
    if (node.op != "_Send" && node.op != "_Recv") continue;
    if (at == part.edges.size() || part.edges[at].node != node.id)
      refuse(node, "has no edge to another task");
    const TaskPart::Edge& edge = part.edges[at++];
    if (edge.number >= part.edges_total || !numbers.insert(edge.number).second)
      refuse(node, "its edge has the number " + std::to_string(edge.number) + ", twice or above " +
                       std::to_string(part.edges_total));
    if (edge.peer == part.task) refuse(node, "its edge ends where it begins");
    if (!keys.insert(node.attribute<std::string>("key")).second)
      refuse(node, "has the key of another edge");
  }
  if (at != part.edges.size())
    throw Error(ErrorCode::kBadConfig, "the part has more edges than nodes that send or receive");
}

void checkFeeds(const TaskPart& part) {
  const std::set<std::string, std::less<>> fed(part.feeds.begin(), part.feeds.end());
  if (fed.size() != part.feeds.size())
    throw Error(ErrorCode::kBadConfig, "a placeholder is fed twice");
  size_t placeholders = 0;
  for (const Node& node : part.graph.nodes()) {
    if (node.op != "Placeholder") continue;
    ++placeholders;
    const auto folded = part.folded.find(node.name);
    const bool is_folded = folded != part.folded.end();
    if (fed.contains(node.name) == is_folded)
      refuse(node, is_folded ? "is fed, and has a value of its own" : "nothing feeds it");
    if (!is_folded) continue;
    const graph::TensorSpec spec{folded->second.dtype(), folded->second.shape()};
    if (!(spec == node.outputs[0])) refuse(node, "its value has another type or shape");
  }
  if (placeholders != part.feeds.size() + part.folded.size())
    throw Error(ErrorCode::kBadConfig, "something is fed that is no placeholder of the part");
}

void checkActions(const TaskPart& part) {
  for (const Node& node : part.graph.nodes()) {
    const auto want = [&](const graph::Output& input, const char* wanted) {
      const Node& state = part.graph.node(input.node);
      if (state.op != wanted || state.device != node.device)
        refuse(node, "its input '" + state.name + "' is no " + wanted + " of its device");
    };
    if (graph::actsOnQueue(node)) want(node.inputs[0], "FIFOQueue");
    for (const graph::Output& variable : graph::variablesOf(node)) want(variable, "Variable");
  }
}

void checkFetches(const TaskPart& part) {
  for (const graph::Output& fetch : part.fetches) {
    const bool is_there =
        fetch.node.value >= 0 && std::cmp_less(fetch.node.value, part.graph.nodes().size()) &&
        fetch.index >= 0 && std::cmp_less(fetch.index, part.graph.node(fetch.node).outputs.size());
    if (!is_there) throw Error(ErrorCode::kBadConfig, "a fetch is no output of the part");
    const Node& node = part.graph.node(fetch.node);
    if (graph::isQueue(node)) refuse(node, "is fetched, but a queue has no value");
  }
}

}  // namespace

uint64_t digestOf(const TaskPart& part) {
  Digest digest;
  digest.add(part.task);
  digest.add(part.graph.nodes().size());
  for (const Node& node : part.graph.nodes()) digest.add(node);
  digest.add(part.fetches.size());
  for (const graph::Output& fetch : part.fetches) digest.add(fetch);
  digest.add(part.feeds.size());
  for (const std::string& feed : part.feeds) digest.add(std::string_view(feed));
  digest.add(part.folded.size());
  for (const auto& [name, value] : part.folded) {
    digest.add(std::string_view(name));
    digest.add(value);
  }
  digest.add(part.edges.size());
  for (const TaskPart::Edge& edge : part.edges) {
    digest.add(Digest::index(edge.node));
    digest.add(uint64_t{edge.number});
    digest.add(edge.peer);
  }
  digest.add(uint64_t{part.edges_total});
  return digest.value();
}

void checkTaskPart(const TaskPart& part, TaskId self,
                   const std::vector<graph::DeviceName>& devices) {
  DTF_CHECK(!devices.empty());
  if (part.task != self)
    throw Error(ErrorCode::kBadConfig,
                "the part is for " + part.task.name() + ", but this is " + self.name());
  checkDevices(part, self, devices);
  checkEdges(part);
  checkFeeds(part);
  checkFetches(part);
  checkActions(part);
}

}  // namespace dtf::engine
