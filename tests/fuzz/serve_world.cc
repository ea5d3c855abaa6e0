#include "tests/fuzz/serve_world.h"

#include <kj/debug.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/graph/builder.h"
#include "common/graph/device_name.h"
#include "common/graph/standard_ops.h"
#include "common/net/connector.h"
#include "common/net/error_bridge.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/rpc_world.h"

namespace dtf::fuzz {

namespace {

constexpr int64_t kElements = 4;
constexpr uint64_t kPlan = 1;
constexpr float kWeight = 3, kShift = 5;
// Hard to guess, because any client that has a container's name can reset it.
constexpr char kContainer[] = "of the client that does nothing wrong, whose variables nobody knows";

// The hostile task of the cluster.
class HostileSink final : public schema::TensorSink::Server {
 public:
  explicit HostileSink(const ServeLoop::Manner& manner) : manner_(manner) {}

 private:
  kj::Promise<void> sendTensors(SendTensorsContext context) override {
    using Manner = ServeLoop::Manner;
    if (manner_ == Manner::kNeverAnswers) return kj::NEVER_DONE;
    if (manner_ == Manner::kRefuses) KJ_FAIL_REQUIRE("no tensors are taken here");
    context.getResults().setOver(manner_ == Manner::kOver);
    return kj::READY_NOW;
  }

  const ServeLoop::Manner& manner_;
};

class HostileGate final : public schema::TaskGate::Server {
 public:
  HostileGate(const ServeLoop::Manner& manner, wire::ConnectionRef connection)
      : manner_(manner), connection_(std::move(connection)) {}

 private:
  kj::Promise<void> tensors(TensorsContext context) override {
    using Manner = ServeLoop::Manner;
    if (manner_ == Manner::kNeverGreets) return kj::NEVER_DONE;
    if (manner_ == Manner::kRefusesHello) KJ_FAIL_REQUIRE("nobody is let in here");
    connection_->greeted = true;
    auto results = context.getResults();
    results.setSink(kj::heap<HostileSink>(manner_));
    results.setIncarnation(incarnationOf(kHostile).value + (manner_ == Manner::kOtherProcess));
    results.setBytesMax(manner_ == Manner::kHoldsNothing ? 0 : uint64_t{1} << 20);
    return kj::READY_NOW;
  }

  const ServeLoop::Manner& manner_;
  const wire::ConnectionRef connection_;
};

graph::Output variable(graph::Builder& b, const char* name) {
  return {b.node("Variable", {},
                 {{"shape", Shape{kElements}},
                  {"initializer", std::string("zeros")},
                  {"container", std::string(kContainer)}},
                 name)};
}

graph::Attributes edge() {
  return {{"key", std::string("k")}, {"dtype", DType::kFloat32}, {"shape", Shape{kElements}}};
}

engine::TaskPart emptyPart(size_t which) {
  return {.task = servingTask(which),
          .graph = graph::Graph(graph::standardOps()),
          .fetches = {},
          .feeds = {},
          .folded = {},
          .edges = {},
          .edges_total = 1};
}

// worker/0: sum = w + x leaves for worker/1; a count is one more. worker/1: sum + v.
std::vector<engine::TaskPart> honestParts() {
  std::vector<engine::TaskPart> parts;
  {
    engine::TaskPart& part = parts.emplace_back(emptyPart(0));
    graph::Builder b(part.graph);
    const auto device = b.deviceScope(graph::fullDevice(part.task).str());
    const auto x = b.placeholder("x", DType::kFloat32, {kElements});
    const auto sum = b.add(variable(b, "w"), x);
    const graph::Output count{
        b.node("AssignAdd", {variable(b, "count"), b.constant({kElements}, 1)}, {}, "counted")};
    part.feeds = {"x"};
    part.fetches = {sum, count};
    part.edges = {{b.node("_Send", {sum}, edge(), "sent"), 0, servingTask(1)}};
  }
  engine::TaskPart& part = parts.emplace_back(emptyPart(1));
  graph::Builder b(part.graph);
  const auto device = b.deviceScope(graph::fullDevice(part.task).str());
  const graph::NodeId received = b.node("_Recv", {}, edge(), "received");
  part.fetches = {b.add({received}, variable(b, "v"))};
  part.edges = {{received, 0, servingTask(0)}};
  return parts;
}

Tensor filled(float value) {
  Tensor tensor(DType::kFloat32, {kElements});
  std::fill(tensor.as<float>().begin(), tensor.as<float>().end(), value);
  return tensor;
}

bool isAll(const Tensor& tensor, float value) {
  const auto all = tensor.as<float>();
  return std::all_of(all.begin(), all.end(), [&](float each) { return each == value; });
}

}  // namespace

Incarnation incarnationOf(TaskId task) {
  return {100 + task.index};
}

cluster::Address serveAddress(size_t which) {
  return {"127.0.0.1", static_cast<uint16_t>(1 + which)};
}

serving::ServeLimits serveLimits() {
  return {.sessions = 4,
          .connections = 12,
          .plans = 4,
          .variables = 10,
          .queues = 4,
          .calls = 8,
          .registrations = 2,
          .sinks = 3,
          .cause_bytes = 100,
          .bytes = 3 << 20,
          .rendezvous = {.parcels = 8, .bytes = 4096, .ended_steps = 8, .cause_bytes = 300}};
}

class HeldQueues::Queue final : public engine::DeviceQueue {
 public:
  explicit Queue(HeldQueues& all) : all_(all) { all_.queues_.push_back(this); }
  ~Queue() override {
    while (runFirst()) continue;
    all_.queues_.remove(this);
  }
  void post(Job job) override { jobs_.push_back(std::move(job)); }
  bool runFirst() {
    if (jobs_.empty()) return false;
    const Job job = std::move(jobs_.front());
    jobs_.pop_front();
    runHere(job);
    return true;
  }

 private:
  HeldQueues& all_;
  std::deque<Job> jobs_;
};

std::unique_ptr<engine::DeviceQueue> HeldQueues::make() {
  return std::make_unique<Queue>(*this);
}

bool HeldQueues::run() {
  bool has_run = false;
  if (held_) return false;
  for (Queue* const queue : queues_)
    while (queue->runFirst()) has_run = true;
  return has_run;
}

void HeldQueues::runOne(size_t which) {
  if (queues_.empty()) return;
  (*std::next(queues_.begin(), static_cast<std::ptrdiff_t>(which % queues_.size())))->runFirst();
}

serving::PartServerOptions serveOptions(size_t which, HeldQueues& queues) {
  serving::PartServerOptions options{.self = servingTask(which),
                                     .incarnation = incarnationOf(servingTask(which)),
                                     .ps = {},
                                     .workers = {},
                                     .limits = serveLimits()};
  for (size_t each = 0; each <= kServing; ++each) options.workers.push_back(serveAddress(each));
  options.make_queue = [&queues](const std::string&) { return queues.make(); };
  return options;
}

ServeLoop::~ServeLoop() noexcept = default;

kj::Own<net::MessageStream> ServeLoop::streamTo(size_t which) {
  DTF_CHECK(servers_[which] != nullptr);
  serving::PartServer& server = *servers_[which];
  StreamPair streams = hasSockets() ? socketStreams(reactor(), {}, server.pool()) : memoryStreams();
  server.serve(kj::mv(streams.far), "fuzz");
  return kj::mv(streams.near);
}

kj::Promise<kj::Own<net::MessageStream>> ServeLoop::connect(std::string, uint16_t port,
                                                            net::ConnectOptions, const net::Limits&,
                                                            std::shared_ptr<net::BufferPool>) {
  const size_t which = port - 1U;
  if (which < kServing) return streamTo(which);
  if (manner_ == Manner::kNobodyThere) return KJ_EXCEPTION(DISCONNECTED, "nobody listens there");
  StreamPair streams = memoryStreams();
  if (manner_ == Manner::kFrozen) {
    frozen_.push_back(kj::mv(streams.far));
    return kj::mv(streams.near);
  }
  if (hostile_ == nullptr)
    hostile_ = std::make_unique<wire::ConnectionSet>(*this, [](const void*) {});
  hostile_->serve(kj::mv(streams.far), "fuzz",
                  [this](const wire::ConnectionRef& connection) -> capnp::Capability::Client {
                    return schema::TaskGate::Client(kj::heap<HostileGate>(manner_, connection));
                  });
  return kj::mv(streams.near);
}

void ServeLoop::close() {
  hostile_ = nullptr;
  frozen_.clear();
}

HonestClient::HonestClient(ServeLoop& loop, std::function<void()> settle)
    : settle_(std::move(settle)),
      calls_(loop, {{serveAddress(0), servingTask(0)}, {serveAddress(1), servingTask(1)}}, {}) {
  const auto done = [this](kj::Promise<void> promise) {
    FUZZ_CHECK(await(promise.then([] { return true; })).has_value());
  };
  done(calls_.open({.number = kSession, .secret = {0x5ec7e7, 0x1234567890abcdef}}));
  std::vector<engine::TaskPart> parts = honestParts();
  const auto set = [&](size_t part, const char* name, float value) {
    const Tensor tensor = filled(value);
    done(calls_.setVariable(*parts[part].graph.find(name), tensor));
  };
  set(0, "w", kWeight);
  set(0, "count", 0);
  set(1, "v", kShift);
  done(calls_.registerPlan(kPlan, std::move(parts)));
  FUZZ_CHECK(step());
}

// nullopt: the task has no room.
template <class T>
std::optional<T> HonestClient::await(kj::Promise<T> promise) {
  std::optional<T> value;
  std::optional<Error> failed;
  const auto waiting = promise.then([&](T&& got) { value.emplace(std::move(got)); })
                           .eagerlyEvaluate([&](kj::Exception&& exception) {
                             failed.emplace(net::toError(exception));
                           });
  settle_();
  if (failed && (failed->code() != ErrorCode::kUnavailable ||
                 failed->message().find("no room") == std::string::npos)) {
    std::fprintf(stderr, "the honest client is told %s: %s\n",
                 std::string(errorCodeName(failed->code())).c_str(), failed->message().c_str());
    std::abort();
  }
  FUZZ_CHECK(value.has_value() || failed.has_value());
  return value;
}

bool HonestClient::step() {
  const auto x = static_cast<float>(++steps_);
  const Tensor fed = filled(x);
  const engine::StepFeeds feeds = {{&fed}, {}};
  const std::optional<engine::StepResult> result = await(calls_.run(kPlan, steps_, feeds));
  if (result) check(*result, x);
  return result.has_value();
}

// A step that has failed may have counted, or not.
void HonestClient::check(const engine::StepResult& result, float x) {
  ++well_;
  FUZZ_CHECK(isAll(result.fetches.at(0).at(0), kWeight + x));
  FUZZ_CHECK(isAll(result.fetches.at(1).at(0), kWeight + x + kShift));
  const Tensor& count = result.fetches[0].at(1);
  const float counted = count.as<float>()[0];
  FUZZ_CHECK(isAll(count, counted));
  FUZZ_CHECK(counted >= static_cast<float>(well_) && counted <= static_cast<float>(steps_));
}

}  // namespace dtf::fuzz
