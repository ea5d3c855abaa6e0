// A part of a graph, as a client can send it to a task that serves: decoded, compiled, and run for
// two steps if it is small. The bytes choose ops, attributes, edges and feeds. The task answers
// every registration, feed and message, and never ends.

#include <capnp/message.h>
#include <kj/async-io.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/checksum.h"
#include "common/engine/executor.h"
#include "common/engine/local_tasks.h"
#include "common/engine/registered_part.h"
#include "common/graph/device_name.h"
#include "common/graph/function.h"
#include "common/graph/op_def.h"
#include "common/net/error_bridge.h"
#include "common/net/message_stream.h"
#include "common/runtime/compute_pool.h"
#include "common/runtime/cpu_device.h"
#include "common/runtime/cpu_kernels.h"
#include "common/wire/session/part_codec.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/reached.h"

namespace {

using namespace dtf;
using graph::AttributeDef;

const fuzz::MustReach kMustReach{"a part that is compiled", "a part that calls functions",
                                 "a step that ends well", "a step that fails",
                                 "a part that is refused"};

constexpr TaskId kSelf{JobKind::kWorker, 0}, kPeer{JobKind::kPs, 0};
constexpr Incarnation kHere{7}, kThere{9};
constexpr size_t kNodesTried = 32;
// Bounds of a part that is compiled: a step within them takes milliseconds.
constexpr uint64_t kBytesMax = 16 << 10;
constexpr int64_t kIterationsMax = 100;

// Returns 0 beyond the end. Borrows the bytes.
class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : at_(data), end_(data + size) {}
  bool empty() const { return at_ == end_; }
  uint8_t byte() { return empty() ? uint8_t{0} : *at_++; }
  uint32_t word() { return byte() | uint32_t{byte()} << 8; }
  // Mostly small; now and then a large number, a negative one, or one beside a bound.
  int64_t number() {
    constexpr int64_t kOdd[] = {-1,
                                255,
                                256,
                                1 << 15,
                                (1 << 20) - 1,
                                1 << 20,
                                INT32_MAX,
                                int64_t{1} << 31,
                                int64_t{1} << 33,
                                int64_t{1} << 40,
                                INT64_MAX,
                                INT64_MIN};
    const uint8_t chosen = byte();
    return chosen < 232 ? chosen % 10 : kOdd[chosen % std::size(kOdd)];
  }

 private:
  const uint8_t* at_;
  const uint8_t* const end_;
};

// Ops in an order in which a new op moves few others.
const graph::OpDef& opOf(uint32_t number) {
  static const std::map<uint32_t, const graph::OpDef*> ops = [] {
    std::map<uint32_t, const graph::OpDef*> by_place;
    for (const std::string_view name : graph::standardOps().names()) {
      Checksum sum;
      sum.update(name.data(), name.size());
      by_place.emplace(static_cast<uint32_t>(sum.value() & 0xffff),
                       graph::standardOps().find(name));
    }
    return by_place;
  }();
  const auto at = ops.lower_bound(number);
  return at == ops.end() ? *ops.begin()->second : *at->second;
}

Shape shapeOf(Bytes& bytes) {
  std::vector<int64_t> dims(bytes.byte() % 5);
  for (int64_t& dim : dims) dim = bytes.number();
  return Shape(std::move(dims));
}

DType dtypeOf(Bytes& bytes) {
  constexpr DType kTypes[] = {DType::kFloat32, DType::kUInt8, DType::kInt32, DType::kInt64};
  return kTypes[bytes.byte() % std::size(kTypes)];
}

// `carried`: the number of results that are like the first parameters.
graph::FunctionRef functionOf(Bytes& bytes, const std::vector<graph::TensorSpec>& parameters,
                              size_t carried, int depth);

graph::Attribute attributeOf(Bytes& bytes, const AttributeDef& def) {
  static const char* const kTexts[] = {"k", "zeros", "edge", "w", ""};
  switch (def.type) {
    case AttributeDef::Type::kBool:
      return bytes.byte() % 2 == 0;
    case AttributeDef::Type::kInt:
      return bytes.number();
    case AttributeDef::Type::kDouble:
      return static_cast<double>(bytes.number()) / 4;
    case AttributeDef::Type::kString:
      return std::string(kTexts[bytes.byte() % std::size(kTexts)]);
    case AttributeDef::Type::kDType:
      return dtypeOf(bytes);
    case AttributeDef::Type::kShape:
      return shapeOf(bytes);
    case AttributeDef::Type::kFunction:
      return graph::FunctionRef();  // see callFunctions()
  }
  return false;
}

graph::Output outputOf(Bytes& bytes, const graph::Graph& graph) {
  const auto nodes = static_cast<uint32_t>(graph.nodes().size());
  const uint8_t back = bytes.byte();
  const uint32_t node = nodes == 0 ? 0 : nodes - 1 - back % std::min(nodes, 16u);
  return {{static_cast<int32_t>(node)}, back / 16 % 8 == 7 ? 1 : 0};
}

// The parameters of a While's body and cond, or of an If's branches, if its numbers are right.
std::vector<graph::TensorSpec> argumentsOf(const graph::Graph& graph, const graph::NodeDef& def) {
  std::vector<graph::TensorSpec> arguments;
  const bool is_while = def.op == "While";
  const auto number = [&def](const char* key) {
    return std::max<int64_t>(0, std::get<int64_t>(def.attributes.find(key)->second));
  };
  const size_t skipped = !is_while || std::get<bool>(def.attributes.find("counted")->second);
  for (size_t i = skipped; i < def.inputs.size(); ++i) {
    const graph::Output& input = def.inputs[i];
    if (graph.nodes().empty()) continue;
    if (static_cast<size_t>(input.index) >= graph.node(input.node).outputs.size()) continue;
    graph::TensorSpec spec = graph.spec(input);
    const auto at = static_cast<int64_t>(i - skipped);
    if (is_while && at >= number("carried") && at - number("carried") < number("sequences") &&
        spec.shape.rank() > 0)
      spec.shape = Shape({spec.shape.dims().begin() + 1, spec.shape.dims().end()});
    arguments.push_back(std::move(spec));
  }
  return arguments;
}

bool isCount(const graph::Graph& graph, const graph::Output& input) {
  if (graph.nodes().empty()) return false;
  const graph::Node& node = graph.node(input.node);
  return static_cast<size_t>(input.index) < node.outputs.size() &&
         graph.spec(input) == graph::TensorSpec{DType::kInt64, {}};
}

// Numbers of a While that fit its inputs.
void fitNumbers(Bytes& bytes, const graph::Graph& graph, graph::NodeDef& def) {
  const bool is_counted = !def.inputs.empty() && isCount(graph, def.inputs[0]);
  const auto inputs = static_cast<int64_t>(def.inputs.size()) - is_counted;
  const int64_t carried = bytes.byte() % (inputs + 1);
  const int64_t sequences = bytes.byte() % (inputs + 1 - carried);
  int64_t iterations = 1 + bytes.byte() % 5;
  if (sequences > 0 && !graph.nodes().empty()) {
    const graph::Node& sequence =
        graph.node(def.inputs[static_cast<size_t>(carried + is_counted)].node);
    if (!sequence.outputs.empty() && sequence.outputs[0].shape.rank() > 0)
      iterations = sequence.outputs[0].shape.dim(0);
  }
  const uint8_t flags = bytes.byte();
  def.attributes = {{"carried", carried},
                    {"sequences", sequences},
                    {"max_iterations", iterations},
                    {"stacked", int64_t{flags / 64}},
                    {"summed", int64_t{flags / 16 % 2}},
                    {"counted", is_counted},
                    {"reverse", flags % 4 == 3},
                    {"keep_carried", flags % 2 == 1}};
}

void callFunctions(Bytes& bytes, const graph::OpDef& op, const graph::Graph& graph,
                   graph::NodeDef& def, int depth) {
  if (def.op == "While" && bytes.byte() % 4 != 0) fitNumbers(bytes, graph, def);
  const auto carried = def.attributes.find("carried");
  for (const AttributeDef& attribute : op.attributes) {
    if (attribute.type != AttributeDef::Type::kFunction) continue;
    if (depth == 2 || (!attribute.required && bytes.byte() % 2 == 0)) continue;
    def.attributes[attribute.name] = functionOf(
        bytes, argumentsOf(graph, def),
        carried == def.attributes.end() || attribute.name != "body"
            ? 0
            : static_cast<size_t>(std::clamp<int64_t>(std::get<int64_t>(carried->second), 0, 5)),
        depth + 1);
  }
}

void addNode(Bytes& bytes, graph::Graph& graph, const std::string& device, int depth = 0) {
  const graph::OpDef& op = opOf(bytes.word());
  graph::NodeDef def;
  def.name = std::string("n").append(std::to_string(graph.nodes().size()));
  def.op = op.name;
  def.device = device;
  const int inputs = op.inputs >= 0 ? op.inputs : bytes.byte() % 5;
  for (int i = 0; i < inputs; ++i) def.inputs.push_back(outputOf(bytes, graph));
  for (const AttributeDef& attribute : op.attributes)
    def.attributes.emplace(attribute.name, attributeOf(bytes, attribute));
  callFunctions(bytes, op, graph, def, depth);
  if (bytes.byte() % 8 == 7) def.control_inputs.push_back(outputOf(bytes, graph).node);
  graph.addNode(std::move(def));
}

graph::FunctionRef functionOf(Bytes& bytes, const std::vector<graph::TensorSpec>& parameters,
                              size_t carried, int depth) {
  constexpr size_t kBodyTried = 6;
  graph::Graph graph(graph::standardOps());
  std::vector<graph::NodeId> nodes;
  for (const graph::TensorSpec& spec : parameters)
    nodes.push_back(graph.addNode({.name = "p" + std::to_string(nodes.size()),
                                   .op = "Placeholder",
                                   .inputs = {},
                                   .attributes = {{"dtype", spec.dtype}, {"shape", spec.shape}}}));
  for (size_t tried = bytes.byte() % kBodyTried; tried > 0 && !bytes.empty(); --tried) {
    try {
      addNode(bytes, graph, "", depth);
    } catch (const Error& error) {
      FUZZ_CHECK(error.code() == ErrorCode::kBadConfig);
    }
  }
  std::vector<graph::Output> results;
  for (size_t i = 0; i < carried && i < parameters.size(); ++i) {
    const auto alike =
        std::find_if(graph.nodes().rbegin(), graph.nodes().rend(), [&](const graph::Node& node) {
          return !node.outputs.empty() && node.outputs[0] == parameters[i];
        });
    results.push_back({alike->id, 0});  // at least the parameter itself
  }
  const auto made = static_cast<uint8_t>(graph.nodes().size());
  for (int left = bytes.byte() % 5; left > 0 && made > 0; --left)
    results.push_back({{bytes.byte() % made}, 0});
  return graph::Function::make(std::move(graph), std::move(nodes), std::move(results));
}

// Edges, feeds and fetches are right, as most clients get them.
engine::TaskPart partOf(Bytes& bytes) {
  engine::TaskPart part{.task = kSelf,
                        .graph = graph::Graph(graph::standardOps()),
                        .fetches = {},
                        .feeds = {},
                        .folded = {},
                        .edges = {},
                        .edges_total = 0};
  for (size_t tried = 0; tried < kNodesTried && !bytes.empty(); ++tried) {
    try {
      addNode(bytes, part.graph, graph::fullDevice(kSelf).str());
    } catch (const Error& error) {
      FUZZ_CHECK(error.code() == ErrorCode::kBadConfig);
    }
  }
  for (const graph::Node& node : part.graph.nodes()) {
    if (node.op == "Placeholder") part.feeds.push_back(node.name);
    if (node.op == "_Send" || node.op == "_Recv")
      part.edges.push_back({node.id, part.edges_total++, kPeer});
    for (size_t i = 0; i < node.outputs.size(); ++i)
      part.fetches.push_back({node.id, static_cast<int32_t>(i)});
  }
  return part;
}

// Iterations of all its loops, nested ones multiplied; a branch counts as one.
int64_t iterationsOf(const graph::Graph& graph) {
  int64_t iterations = 0;
  for (const graph::Node& node : graph.nodes()) {
    const int64_t times = node.op == "While" ? node.attribute<int64_t>("max_iterations") : 1;
    for (const auto& [name, value] : node.attributes)
      if (const auto* function = std::get_if<graph::FunctionRef>(&value); function && *function)
        iterations += times * std::max<int64_t>(1, (*function)->iterations());
  }
  return iterations;
}

// Encodes the part and decodes the message.
std::optional<wire::DecodedPart> throughTheWire(engine::TaskPart part) {
  const auto shared = std::make_shared<const engine::TaskPart>(std::move(part));
  capnp::MallocMessageBuilder message;
  auto pipe = kj::newTwoWayPipe();
  auto stream = net::wrapStream(kj::mv(pipe.ends[0]));
  wire::encodePart(shared, {{kPeer, kThere}}, *stream, message.initRoot<schema::Part>());
  try {
    wire::DecodedPart decoded = wire::decodePart(message.getRoot<schema::Part>().asReader());
    engine::checkTaskPart(decoded.part, kSelf, {graph::fullDevice(kSelf)});
    FUZZ_CHECK(engine::digestOf(decoded.part) == engine::digestOf(*shared));
    return decoded;
  } catch (const Error& error) {
    FUZZ_CHECK(error.code() == ErrorCode::kBadData || error.code() == ErrorCode::kBadConfig);
    ++fuzz::reached()["a part that is refused"];
    return std::nullopt;
  }
}

// One CPU with two threads, which share even small work.
struct Machine {
  runtime::ComputePool pool{2};
  runtime::KernelTable kernels;
  runtime::CpuDevice cpu;
  engine::DeviceThreads devices{{{graph::fullDevice(kSelf), &cpu, &kernels}}};
  Machine() {
    runtime::Processor processor(bestIsa(), &pool);
    processor.part_work = 1000;
    runtime::registerCpuKernels(kernels, processor);
  }
};

class Away final : public engine::Departures {
 public:
  void send(uint64_t, TaskId to, std::vector<engine::PartProgram::Send> tensors,
            Done done) override {
    FUZZ_CHECK(to == kPeer);
    for (const auto& tensor : tensors) use(tensor.bytes);
    done(std::nullopt);
  }
  static void use(engine::Bytes bytes) {
    if (!bytes.empty()) fuzz::use(std::to_integer<int>(bytes[bytes.size() - 1]));
  }
};

engine::Bytes filled(std::vector<std::unique_ptr<Buffer>>& buffers, uint64_t size, uint8_t value) {
  buffers.push_back(std::make_unique<Buffer>(size));
  // Whole small numbers of any type, or the same byte throughout.
  std::byte* const to = buffers.back()->data();
  if (size > 0) std::memset(to, value < 128 ? 0 : value, size);
  for (uint64_t at = 0; value < 128 && at < size; at += sizeof(uint32_t))
    to[at] = std::byte{static_cast<uint8_t>(value % 4)};
  return {to, size};
}

uint64_t bytesOf(const graph::TensorSpec& spec) {
  return static_cast<uint64_t>(spec.shape.elements()) * dtypeBytes(spec.dtype);
}

// Some variables get no value: a step may assign one, or fail.
void giveValue(const graph::Node& node, engine::VariableStore& variables, Bytes& bytes) {
  if (node.op != "Variable" || bytes.byte() % 8 == 7) return;
  std::vector<std::unique_ptr<Buffer>> buffers;
  variables.use(engine::ResourceKey::of(node), node.outputs[0], node.name)
      ->set(filled(buffers, bytesOf(node.outputs[0]), bytes.byte()));
}

using Edges = std::vector<engine::TaskPart::Edge>;

void runStep(engine::RegisteredPart& part, const Edges& edges, const graph::Graph& graph,
             uint64_t step, Bytes& bytes) {
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<engine::Bytes> feeds;
  for (const graph::TensorSpec& spec : part.feeds())
    feeds.push_back(filled(buffers, bytesOf(spec), bytes.byte()));
  std::vector<engine::StepPart> parts;
  part.addStep(feeds, parts);
  engine::Rendezvous rendezvous;
  engine::Routes routes;
  for (const engine::TaskPart::Edge& edge : edges) {
    const graph::Node& node = graph.node(edge.node);
    if (node.op == "_Send") {
      routes.destinations.emplace(edge.number, edge.peer);
      continue;
    }
    routes.sources.emplace(edge.number, kThere);
    rendezvous.send({step, kThere, edge.number},
                    {.bytes = filled(buffers, bytesOf(node.outputs[0]), bytes.byte())});
  }
  Away away;
  std::promise<engine::StepEnd> ended;
  engine::startParts({step, kHere}, parts,
                     {.rendezvous = &rendezvous, .routes = &routes, .departures = &away},
                     [&](engine::StepEnd end) { ended.set_value(std::move(end)); });
  const engine::StepEnd end = ended.get_future().get();
  rendezvous.end(step);
  if (const Error* const error = std::get_if<Error>(&end)) {
    FUZZ_CHECK(error->code() != ErrorCode::kInternal);
    ++fuzz::reached()["a step that fails"];
    return;
  }
  for (size_t i = 0; i < part.fetches().size(); ++i) {
    const engine::Bytes fetched = part.fetch(i, parts);
    FUZZ_CHECK(fetched.size() == bytesOf(part.fetches()[i]));
    Away::use(fetched);
  }
  ++fuzz::reached()["a step that ends well"];
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Machine machine;
  Bytes bytes(data, size);
  std::optional<wire::DecodedPart> decoded = throughTheWire(partOf(bytes));
  if (!decoded || decoded->bytes > kBytesMax || iterationsOf(decoded->part.graph) > kIterationsMax)
    return 0;
  const graph::Graph graph = decoded->part.graph;
  const Edges edges = decoded->part.edges;
  const uint32_t first_own = decoded->part.edges_total;
  engine::VariableStore variables;
  engine::QueueStore queues;
  std::optional<engine::RegisteredPart> part;
  try {
    for (const graph::Node& node : graph.nodes()) giveValue(node, variables, bytes);
    part.emplace(std::move(decoded->part), machine.devices.devices(), first_own, variables, queues);
  } catch (const Error& error) {
    FUZZ_CHECK(error.code() == ErrorCode::kBadConfig);
    ++fuzz::reached()["a part that is refused"];
    return 0;
  }
  ++fuzz::reached()["a part that is compiled"];
  if (iterationsOf(graph) > 0) ++fuzz::reached()["a part that calls functions"];
  for (uint64_t step = 1; step <= 2; ++step) runStep(*part, edges, graph, step, bytes);
  return 0;
}
