// A part of a graph as a task that serves is given it, as far as a client can bring it: decoded,
// compiled, and run for two steps, when it is small. The bytes choose ops, attributes, what reads
// what, and what is fed. Whatever a client registers, feeds and sends, the task answers; it never
// ends.

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
#include "common/graph/op_def.h"
#include "common/net/error_bridge.h"
#include "common/net/message_stream.h"
#include "common/runtime/compute_pool.h"
#include "common/runtime/cpu_device.h"
#include "common/runtime/cpu_kernels.h"
#include "common/wire/part_codec.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/reached.h"

namespace {

using namespace dtf;
using graph::AttributeDef;

const fuzz::MustReach kMustReach{"a part that is compiled", "a step that ends well",
                                 "a step that fails", "a part that is refused"};

constexpr TaskId kSelf{JobKind::kWorker, 0}, kPeer{JobKind::kPs, 0};
constexpr Incarnation kHere{7}, kThere{9};
constexpr size_t kNodesTried = 48;
// Of a part that is compiled: what computes over them takes milliseconds.
constexpr uint64_t kBytesMax = 16 << 10;

// What is asked for beyond the end is 0. Borrows the bytes.
class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : at_(data), end_(data + size) {}
  bool empty() const { return at_ == end_; }
  uint8_t byte() { return empty() ? uint8_t{0} : *at_++; }
  uint32_t word() { return byte() | uint32_t{byte()} << 8; }
  // Mostly small, now and then what is large, negative, or beside a bound.
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

// Ops in an order in which a new one moves few others.
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
  }
  return false;
}

graph::Output outputOf(Bytes& bytes, const graph::Graph& graph) {
  const auto nodes = static_cast<uint32_t>(graph.nodes().size());
  const uint8_t back = bytes.byte();
  const uint32_t node = nodes == 0 ? 0 : nodes - 1 - back % std::min(nodes, 16u);
  return {{static_cast<int32_t>(node)}, back / 16 % 8 == 7 ? 1 : 0};
}

void addNode(Bytes& bytes, graph::Graph& graph) {
  const graph::OpDef& op = opOf(bytes.word());
  graph::NodeDef def;
  def.name = std::string("n").append(std::to_string(graph.nodes().size()));
  def.op = op.name;
  def.device = graph::fullDevice(kSelf).str();
  const int inputs = op.inputs >= 0 ? op.inputs : bytes.byte() % 5;
  for (int i = 0; i < inputs; ++i) def.inputs.push_back(outputOf(bytes, graph));
  for (const AttributeDef& attribute : op.attributes)
    def.attributes.emplace(attribute.name, attributeOf(bytes, attribute));
  if (bytes.byte() % 8 == 7) def.control_inputs.push_back(outputOf(bytes, graph).node);
  graph.addNode(std::move(def));
}

// What most clients would get right is right: edges, feeds and fetches.
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
      addNode(bytes, part.graph);
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

// As it comes out of a message.
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

// Some have none: a step may assign it, or say so.
void giveValue(const graph::Node& node, engine::VariableStore& variables, Bytes& bytes) {
  if (node.op != "Variable" || bytes.byte() % 8 == 7) return;
  std::vector<std::unique_ptr<Buffer>> buffers;
  variables.use(engine::VariableKey::of(node), node.outputs[0], node.name)
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
  if (!decoded || decoded->bytes > kBytesMax) return 0;
  const graph::Graph graph = decoded->part.graph;
  const Edges edges = decoded->part.edges;
  const uint32_t first_own = decoded->part.edges_total;
  engine::VariableStore variables;
  std::optional<engine::RegisteredPart> part;
  try {
    for (const graph::Node& node : graph.nodes()) giveValue(node, variables, bytes);
    part.emplace(std::move(decoded->part), machine.devices.devices(), first_own, variables);
  } catch (const Error& error) {
    FUZZ_CHECK(error.code() == ErrorCode::kBadConfig);
    ++fuzz::reached()["a part that is refused"];
    return 0;
  }
  ++fuzz::reached()["a part that is compiled"];
  for (uint64_t step = 1; step <= 2; ++step) runStep(*part, edges, graph, step, bytes);
  return 0;
}
