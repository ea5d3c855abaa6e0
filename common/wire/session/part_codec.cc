#include "common/wire/session/part_codec.h"

#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/graph/function.h"
#include "common/graph/op_def.h"
#include "common/wire/model_codec.h"
#include "common/wire/session/tensor_codec.h"

namespace dtf::wire {

namespace {

using graph::Node;
using graph::NodeId;
using schema::Part;

uint32_t indexOf(NodeId node) {
  DTF_CHECK(node.value >= 0);
  return static_cast<uint32_t>(node.value);
}

void encodeOutput(const graph::Output& output, Part::Output::Builder builder) {
  builder.setNode(indexOf(output.node));
  builder.setIndex(static_cast<uint32_t>(output.index));
}

void encodeFunction(const graph::Function& function, Part::Function::Builder builder);

void encodeAttribute(const graph::Attribute& attribute, Part::Attribute::Value::Builder builder) {
  std::visit(
      [&builder](const auto& value) {
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, bool>) {
          builder.setTruth(value);
        } else if constexpr (std::is_same_v<Value, int64_t>) {
          builder.setInteger(value);
        } else if constexpr (std::is_same_v<Value, double>) {
          builder.setNumber(value);
        } else if constexpr (std::is_same_v<Value, std::string>) {
          builder.setText(value);
        } else if constexpr (std::is_same_v<Value, DType>) {
          builder.setDtype(static_cast<uint8_t>(value));
        } else if constexpr (std::is_same_v<Value, graph::FunctionRef>) {
          if (value == nullptr) return builder.setNothing();
          encodeFunction(*value, builder.initFunction());
        } else {
          auto dims = builder.initShape(static_cast<uint32_t>(value.rank()));
          for (int axis = 0; axis < value.rank(); ++axis)
            dims.set(static_cast<uint32_t>(axis), value.dim(axis));
        }
      },
      attribute);
}

void encodeNode(const Node& node, uint16_t device, Part::Node::Builder builder) {
  builder.setName(node.name);
  builder.setOp(node.op);
  builder.setDevice(device);
  auto inputs = builder.initInputs(static_cast<uint32_t>(node.inputs.size()));
  for (uint32_t i = 0; i < inputs.size(); ++i) encodeOutput(node.inputs[i], inputs[i]);
  auto after = builder.initAfter(static_cast<uint32_t>(node.control_inputs.size()));
  for (uint32_t i = 0; i < after.size(); ++i) after.set(i, indexOf(node.control_inputs[i]));
  auto attributes = builder.initAttributes(static_cast<uint32_t>(node.attributes.size()));
  uint32_t at = 0;
  for (const auto& [name, value] : node.attributes) {
    auto attribute = attributes[at++];
    attribute.setName(name);
    encodeAttribute(value, attribute.getValue());
  }
}

void encodeFunction(const graph::Function& function, Part::Function::Builder builder) {
  const std::vector<Node>& all = function.graph().nodes();
  auto nodes = builder.initNodes(static_cast<uint32_t>(all.size()));
  for (uint32_t i = 0; i < nodes.size(); ++i) encodeNode(all[i], 0, nodes[i]);
  auto parameters = builder.initParameters(static_cast<uint32_t>(function.parameters().size()));
  for (uint32_t i = 0; i < parameters.size(); ++i)
    parameters.set(i, indexOf(function.parameters()[i]));
  auto results = builder.initResults(static_cast<uint32_t>(function.results().size()));
  for (uint32_t i = 0; i < results.size(); ++i) encodeOutput(function.results()[i], results[i]);
}

// Encodes the nodes, and the full names of their devices in the order of first use.
void encodeNodes(const graph::Graph& graph, Part::Builder builder) {
  std::map<std::string, uint16_t> devices;
  std::vector<std::string> names;
  auto nodes = builder.initNodes(static_cast<uint32_t>(graph.nodes().size()));
  for (const Node& node : graph.nodes()) {
    const auto [device, is_new] =
        devices.emplace(node.device, static_cast<uint16_t>(devices.size()));
    if (is_new) names.push_back(node.device);
    encodeNode(node, device->second, nodes[indexOf(node.id)]);
  }
  auto list = builder.initDevices(static_cast<uint32_t>(names.size()));
  for (uint32_t i = 0; i < list.size(); ++i) list.set(i, names[i]);
}

NodeId nodeNamed(const graph::Graph& graph, const std::string& name) {
  const Node* const node = graph.find(name);
  DTF_CHECK_MSG(node != nullptr, name);
  return node->id;
}

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::kBadData, what);
}

void checkCount(uint64_t count, uint64_t most, const std::string& what) {
  if (count > most)
    refuse(what + ": " + std::to_string(count) + "; the bound is " + std::to_string(most));
}

std::string textOf(capnp::Text::Reader reader, uint32_t most, const std::string& what) {
  checkCount(reader.size(), most, what + ", characters");
  std::string text(reader.begin(), reader.size());
  // Cap'n Proto's writers would cut the text there, so two names could become one.
  if (text.find('\0') != std::string::npos) refuse(what + " contains a zero byte");
  return text;
}

NodeId decodeNodeId(uint32_t node) {
  if (!std::in_range<int32_t>(node)) refuse("a node has the number " + std::to_string(node));
  return {static_cast<int32_t>(node)};
}

graph::Output decodeOutput(Part::Output::Reader reader) {
  if (!std::in_range<int32_t>(reader.getIndex()))
    refuse("an output has the number " + std::to_string(reader.getIndex()));
  return {decodeNodeId(reader.getNode()), static_cast<int32_t>(reader.getIndex())};
}

uint64_t bytesOf(const Node& node) {
  uint64_t bytes = 0;
  for (const graph::TensorSpec& spec : node.outputs) {
    // In a chain of Gathers the ranks add up, so that shapes alone would take gigabytes.
    if (spec.shape.rank() > static_cast<int>(kRankMax))
      refuse("node '" + printable(node.name) + "' makes a tensor of rank " +
             std::to_string(spec.shape.rank()) + "; the bound is " + std::to_string(kRankMax));
    const auto elements = static_cast<uint64_t>(spec.shape.elements());
    // In an empty tensor the other dimensions count, since kernels compute with them.
    uint64_t extent = 1;
    for (const int64_t dim : spec.shape.dims())
      if (dim > 0 && __builtin_mul_overflow(extent, static_cast<uint64_t>(dim), &extent))
        extent = UINT64_MAX;
    if (extent > kTensorBytesMax / dtypeBytes(spec.dtype))
      refuse("node '" + printable(node.name) + "' makes a tensor of " + spec.shape.str() +
             "; the most is " + bytesText(kTensorBytesMax));
    bytes += elements * dtypeBytes(spec.dtype);
  }
  return bytes;
}

// Returns the size of a node's description in the graph, with the types and shapes of its outputs.
uint64_t describedBytes(const Node& node) {
  constexpr uint64_t kOutputBytes = 256;  // type, shape, place in the compiled part
  uint64_t bytes = node.outputs.size() * kOutputBytes;
  for (const auto& [name, value] : node.attributes) {
    bytes += name.size();
    if (const auto* const text = std::get_if<std::string>(&value)) bytes += text->size();
  }
  return bytes;
}

// Reads the nodes of one part and of its functions, and adds up their sizes.
// Borrows: the names of the part's devices.
class NodeReader {
 public:
  explicit NodeReader(const std::vector<std::string>& devices) : devices_(devices) {}

  graph::Graph read(capnp::List<Part::Node>::Reader nodes);
  uint64_t bytes() const { return bytes_; }  // of all tensors that the nodes produce
  uint64_t nodes() const { return nodes_; }
  uint64_t described() const { return described_; }

 private:
  graph::NodeDef node(Part::Node::Reader reader);
  graph::Attribute attribute(Part::Attribute::Value::Reader reader, const std::string& what);
  graph::FunctionRef function(Part::Function::Reader reader, const std::string& what);

  const std::vector<std::string>& devices_;
  uint64_t bytes_ = 0, nodes_ = 0, described_ = 0;
  int depth_ = 0;  // of functions
};

graph::Graph NodeReader::read(capnp::List<Part::Node>::Reader nodes) {
  nodes_ += nodes.size();
  checkCount(nodes_, kNodesMax, "nodes of a part");
  graph::Graph graph(graph::standardOps());
  for (const auto reader : nodes) {
    const NodeId id = graph.addNode(node(reader));
    bytes_ += bytesOf(graph.node(id));
    described_ += describedBytes(graph.node(id));
    if (bytes_ > kPartBytesMax)
      refuse("with node '" + printable(graph.node(id).name) + "' the tensors of the part take " +
             bytesText(bytes_) + "; the most is " + bytesText(kPartBytesMax));
  }
  return graph;
}

graph::FunctionRef NodeReader::function(Part::Function::Reader reader, const std::string& what) {
  if (depth_ == graph::Function::kDepthMax)
    refuse(what + " calls functions more than " + std::to_string(graph::Function::kDepthMax) +
           " deep");
  checkCount(reader.getParameters().size(), kInputsMax, what + ", its parameters");
  checkCount(reader.getResults().size(), kInputsMax, what + ", its results");
  std::vector<NodeId> parameters;
  for (const uint32_t parameter : reader.getParameters())
    parameters.push_back(decodeNodeId(parameter));
  std::vector<graph::Output> results;
  for (const auto result : reader.getResults()) results.push_back(decodeOutput(result));
  try {
    ++depth_;
    graph::Graph graph = read(reader.getNodes());
    --depth_;
    return graph::Function::make(std::move(graph), std::move(parameters), std::move(results));
  } catch (const Error& error) {
    // The names within a function are local to it; its caller adds the path to the function.
    throw Error(error.code(), what + ": " + error.message());
  }
}

graph::Attribute NodeReader::attribute(Part::Attribute::Value::Reader reader,
                                       const std::string& what) {
  switch (reader.which()) {
    case Part::Attribute::Value::TRUTH:
      return reader.getTruth();
    case Part::Attribute::Value::INTEGER:
      return reader.getInteger();
    case Part::Attribute::Value::NUMBER:
      return reader.getNumber();
    case Part::Attribute::Value::TEXT:
      return textOf(reader.getText(), kAttributeBytesMax, what);
    case Part::Attribute::Value::DTYPE:
      return readDType(reader.getDtype(), what);
    case Part::Attribute::Value::SHAPE:
      return readShape(reader.getShape(), what);
    case Part::Attribute::Value::FUNCTION:
      return function(reader.getFunction(), what);
    case Part::Attribute::Value::NOTHING:
      return graph::FunctionRef();
  }
  refuse(what + " is of a kind that this version doesn't know");
}

graph::NodeDef NodeReader::node(Part::Node::Reader reader) {
  graph::NodeDef def;
  def.name = textOf(reader.getName(), kNameBytesMax, "a node's name");
  const std::string what = "node '" + printable(def.name) + "'";
  def.op = textOf(reader.getOp(), kNameBytesMax, what + ", its op");
  if (depth_ == 0) {
    if (reader.getDevice() >= devices_.size())
      refuse(what + " is on a device that isn't in the list");
    def.device = devices_[reader.getDevice()];
  }
  checkCount(reader.getInputs().size(), kInputsMax, what + ", its inputs");
  for (const auto input : reader.getInputs()) def.inputs.push_back(decodeOutput(input));
  checkCount(reader.getAfter().size(), kInputsMax, what + ", its control inputs");
  for (const uint32_t before : reader.getAfter())
    def.control_inputs.push_back(decodeNodeId(before));
  checkCount(reader.getAttributes().size(), kAttributesMax, what + ", its attributes");
  for (const auto entry : reader.getAttributes()) {
    std::string name = textOf(entry.getName(), kNameBytesMax, what + ", an attribute's name");
    const std::string which = what + ", its attribute '" + printable(name) + "'";
    if (!def.attributes.emplace(std::move(name), attribute(entry.getValue(), which)).second)
      refuse(which + " is there twice");
  }
  return def;
}

graph::Graph decodeNodes(Part::Reader reader, DecodedPart& counts) {
  checkCount(reader.getDevices().size(), kDevicesMax, "devices of a part");
  std::vector<std::string> devices;
  for (const auto device : reader.getDevices())
    devices.push_back(textOf(device, kNameBytesMax, "a device's name"));
  NodeReader nodes(devices);
  graph::Graph graph = nodes.read(reader.getNodes());
  counts.bytes = nodes.bytes();
  counts.nodes = nodes.nodes();
  counts.described = nodes.described();
  return graph;
}

const Node& nodeOf(const graph::Graph& graph, uint32_t node) {
  if (node >= graph.nodes().size()) refuse("there is no node " + std::to_string(node));
  return graph.nodes()[node];
}

uint64_t bytesOf(const graph::Graph& graph, graph::Output output) {
  const Node& node = nodeOf(graph, static_cast<uint32_t>(output.node.value));
  if (output.index < 0 || static_cast<size_t>(output.index) >= node.outputs.size())
    refuse("a fetch is of node '" + printable(node.name) + "', which has no output " +
           std::to_string(output.index));
  const graph::TensorSpec& spec = node.outputs[static_cast<size_t>(output.index)];
  return spec.bytes();
}

// Checks that all tensors for one task fit into one message, since they may be sent together.
void checkSent(const engine::TaskPart& part) {
  std::map<TaskId, uint64_t> sent;
  for (const engine::TaskPart::Edge& edge : part.edges) {
    const Node& node = part.graph.node(edge.node);
    if (node.op != "_Send") continue;
    const graph::TensorSpec& spec = part.graph.spec(node.inputs[0]);
    addToMessage(sent[edge.peer], spec.bytes(),
                 "the tensor of node '" + printable(node.name) + "' to " + edge.peer.name());
  }
}

}  // namespace

void encodePart(const std::shared_ptr<const engine::TaskPart>& shared, const Processes& processes,
                net::MessageStream& stream, Part::Builder builder, uint64_t chunk_bytes) {
  const engine::TaskPart& part = *shared;
  encodeTask(part.task, builder.initTask());
  encodeNodes(part.graph, builder);
  auto fetches = builder.initFetches(static_cast<uint32_t>(part.fetches.size()));
  for (uint32_t i = 0; i < fetches.size(); ++i) encodeOutput(part.fetches[i], fetches[i]);
  auto feeds = builder.initFeeds(static_cast<uint32_t>(part.feeds.size()));
  for (uint32_t i = 0; i < feeds.size(); ++i)
    feeds.set(i, indexOf(nodeNamed(part.graph, part.feeds[i])));
  auto folded = builder.initFolded(static_cast<uint32_t>(part.folded.size()));
  TensorWriter tensors(stream, shared, chunk_bytes);
  uint32_t at = 0;
  for (const auto& [name, value] : part.folded) {
    auto entry = folded[at++];
    entry.setNode(indexOf(nodeNamed(part.graph, name)));
    tensors.write({value.dtype(), value.shape()}, {value.data(), value.bytes()}, entry.initValue());
  }
  auto edges = builder.initEdges(static_cast<uint32_t>(part.edges.size()));
  for (uint32_t i = 0; i < edges.size(); ++i) {
    const engine::TaskPart::Edge& edge = part.edges[i];
    edges[i].setNode(indexOf(edge.node));
    edges[i].setNumber(edge.number);
    encodeTask(edge.peer, edges[i].initPeer());
    edges[i].setIncarnation(processes.at(edge.peer).value);
  }
  builder.setEdgesTotal(part.edges_total);
}

DecodedPart decodePart(Part::Reader reader) {
  DecodedPart decoded{.part = {.task = decodeTask(reader.getTask()),
                               .graph = graph::Graph(graph::standardOps()),
                               .fetches = {},
                               .feeds = {},
                               .folded = {},
                               .edges = {},
                               .edges_total = reader.getEdgesTotal()},
                      .peers = {}};
  engine::TaskPart& part = decoded.part;
  part.graph = decodeNodes(reader, decoded);
  checkCount(part.edges_total, kEdgesMax, "edges of a plan");
  checkCount(reader.getFetches().size(), kNodesMax, "fetches of a part");
  uint64_t fetched = 0;
  for (const auto fetch : reader.getFetches()) {
    part.fetches.push_back(decodeOutput(fetch));
    addToMessage(fetched, bytesOf(part.graph, part.fetches.back()), "the next fetch");
  }
  checkCount(reader.getFeeds().size(), part.graph.nodes().size(), "feeds of a part");
  for (const uint32_t feed : reader.getFeeds()) part.feeds.push_back(nodeOf(part.graph, feed).name);
  checkCount(reader.getFolded().size(), part.graph.nodes().size(), "values of a part");
  for (const auto entry : reader.getFolded()) {
    const std::string& name = nodeOf(part.graph, entry.getNode()).name;
    const std::string what = "the value of node '" + printable(name) + "'";
    if (!part.folded.emplace(name, readTensor(entry.getValue(), what)).second)
      refuse(what + " is there twice");
  }
  checkCount(reader.getEdges().size(), part.graph.nodes().size(), "edges of a part");
  for (const auto edge : reader.getEdges()) {
    part.edges.push_back(
        {nodeOf(part.graph, edge.getNode()).id, edge.getNumber(), decodeTask(edge.getPeer())});
    decoded.peers.push_back({edge.getIncarnation()});
  }
  checkSent(part);
  return decoded;
}

}  // namespace dtf::wire
