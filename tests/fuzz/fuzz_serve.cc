// Calls of clients, and of tasks of other sessions, to two tasks that serve (`--serve`), in any
// order with any arguments. The services are real, over streams in memory or sockets; devices,
// threads and time move by the program's calls; a third task of the cluster is hostile.
// - An honest client beside them gets right answers, or the error that there is no room.
// - Every call gets an answer within its deadline. Ended sessions free everything they held.

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <vector>

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/graph/device_name.h"
#include "common/net/error_bridge.h"
#include "common/runtime/cpu_kernels.h"
#include "common/wire/model_codec.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/no_traces.h"
#include "tests/fuzz/pending_calls.h"
#include "tests/fuzz/program.h"
#include "tests/fuzz/raw_peer.h"
#include "tests/fuzz/reached.h"
#include "tests/fuzz/rpc_messages.h"
#include "tests/fuzz/serve_parts.h"
#include "tests/fuzz/serve_world.h"

namespace {

using namespace dtf;
using fuzz::Arguments;
using fuzz::kServing;

const fuzz::MustReach kMustReach = {"hello",   "another hello", "registered",     "variable",
                                    "ran",     "step failed",   "sink",           "taken",
                                    "aborted", "released",      "reset",          "loaded",
                                    "status",  "raw",           "edges",          "ended late",
                                    "dropped", "over",          "refused secret", "elements"};

constexpr uint8_t kSocketsFrom = 252;  // of the world: few, as sockets take twice as long as memory
constexpr size_t kCallsMax = 200;
constexpr Duration kGrace = std::chrono::seconds(3);  // a failed step sends for 1 more
constexpr Duration kHelloOver = std::chrono::seconds(6);
constexpr uint64_t kInterfaces[] = {capnp::typeId<schema::TaskGate>(),
                                    capnp::typeId<schema::GraphSession>(),
                                    capnp::typeId<schema::TensorSink>()};
constexpr Duration kSteps[] = {std::chrono::milliseconds(1),    std::chrono::milliseconds(60),
                               std::chrono::milliseconds(600),  std::chrono::milliseconds(1100),
                               std::chrono::milliseconds(5600), std::chrono::seconds(11)};

// State that all inputs share. Devices outlive the programs compiled for them.
struct World {
  net::Reactor reactor;
  runtime::KernelTable kernels;
  runtime::CpuDevice cpus[kServing];
  World() { runtime::registerCpuKernels(kernels); }
};

// One connection to a task: as a session's client, as another task of it, or both.
struct Client {
  std::unique_ptr<net::RpcConnection> connection;
  size_t serving = 0;  // which task
  kj::Maybe<schema::GraphSession::Client> session;
  kj::Maybe<schema::TensorSink::Client> sink;
};

class Session {
 public:
  Session(World& world, uint8_t kind) : loop_(world.reactor, kind >= kSocketsFrom) {
    for (size_t i = 0; i < kServing; ++i) {
      servers_[i] = std::make_unique<serving::PartServer>(
          fuzz::serveOptions(i, queues_), loop_,
          std::vector<engine::SessionDevice>{
              {graph::fullDevice(fuzz::servingTask(i)), &world.cpus[i], &world.kernels}});
      loop_.tell(i, servers_[i].get());
    }
    honest_ = std::make_unique<fuzz::HonestClient>(loop_, [this] { settle(); });
    for (size_t i = 0; i < kServing; ++i) held_[i] = heldBesideValues(i);
  }

  void run(const fuzz::Program& program) {
    for (size_t i = 0; i < std::min(kCallsMax, program.calls.size()); ++i) {
      arguments_ = Arguments(program.calls[i]);
      // An exception here comes from this side: a message that can't be built.
      const auto refused = kj::runCatchingExceptions([this] { operation(); });
      (void)refused;
      settle();
      checkBounds();
    }
    honestStep();
    calls_.awaitAll(kGrace, [this] { settle(); });
    close();
  }

 private:
  // Runs everything that can run.
  void settle() {
    do loop_.settle();
    while (queues_.run());
  }

  void advance(Duration by) {
    loop_.time().advance(by, [this] { settle(); });
  }

  uint64_t heldBesideValues(size_t which) const {
    const serving::ServedTask& task = servers_[which]->task();
    return task.budget->taken() - task.variables.load().bytes - task.queues.load().bytes;
  }

  void checkBounds() const {
    const serving::ServeLimits limits = fuzz::serveLimits();
    for (const auto& server : servers_) {
      // A message of twice the bound is read if no other message is above it.
      FUZZ_CHECK(server->task().budget->taken() <=
                 (loop_.hasSockets() ? 3 : 1) * server->task().budget->bytesMax());
      FUZZ_CHECK(server->sessions() <= limits.sessions);
      FUZZ_CHECK(server->task().variables.load().variables <= limits.variables);
      const engine::QueueStore::Load queues = server->task().queues.load();
      FUZZ_CHECK(queues.queues <= limits.queues);
      FUZZ_CHECK(queues.bytes <= server->task().budget->taken());
      if (queues.elements > 0) ++fuzz::reached()["elements"];
    }
  }

  // The honest client is answered at once, even when other clients have calls under way.
  void honestStep() {
    queues_.hold(false);
    settle();
    if (!honest_->step()) ++fuzz::reached()["no room"];
  }

  // After the other clients have gone, the tasks hold nothing of theirs; the honest client goes on.
  void close() {
    calls_.clear();
    clients_ = {};
    raw_ = {};
    settle();
    advance(kHelloOver);
    for (const auto& server : servers_) FUZZ_CHECK(server->sessions() == 1);
    loop_.manner() = fuzz::ServeLoop::Manner::kTakes;
    // Values stay, and may leave no room.
    for (size_t i = 0; i < kServing; ++i) {
      for (const char* const container : {"a", "b", "c"}) {
        servers_[i]->task().variables.reset(container);
        servers_[i]->task().queues.reset(container);
      }
    }
    FUZZ_CHECK(honest_->step());
    settle();
    for (size_t i = 0; i < kServing; ++i) FUZZ_CHECK(heldBesideValues(i) == held_[i]);
    honest_ = nullptr;
    settle();
    loop_.close();
    settle();
    for (auto& server : servers_) server = nullptr;
    settle();
    FUZZ_CHECK(loop_.time().idle());
  }

  // `due`: the deadline of its answer.
  void keep(kj::Promise<void> call, Duration due = {}) { calls_.keep(kj::mv(call), due); }

  // `reaches`: the name that an answer without an error counts for; `refused`: one with an error.
  template <class Request>
  void send(Request&& request, const char* reaches, Duration due = {},
            const char* refused = nullptr) {
    keep(request.send().ignoreResult().then([reaches] { ++fuzz::reached()[reaches]; },
                                            [refused](kj::Exception&& exception) {
                                              if (refused != nullptr) ++fuzz::reached()[refused];
                                              kj::throwFatalException(kj::mv(exception));
                                            }),
         due);
  }

  Client& client() {
    const uint8_t which = arguments_.byte() % clients_.size();
    Client& one = clients_[which];
    one.serving = which % kServing;
    if (one.connection == nullptr)
      one.connection = std::make_unique<net::RpcConnection>(loop_.streamTo(one.serving),
                                                            net::RpcOptions{"served"});
    return one;
  }

  bool fillToken(schema::SessionToken::Builder token) {
    const uint8_t which = arguments_.byte();
    const bool is_honest = which >= 240;
    token.setNumber(is_honest ? fuzz::HonestClient::kSession : 1 + which % 2);
    token.setSecret0(which == 200 ? 0 : 1);
    token.setSecret1(which < 200 || is_honest ? 0 : which % 4);
    return is_honest;
  }

  void operation();
  void gateCall(uint8_t method);
  void hello(Client& one);
  void tensors(Client& one);
  void sessionCall(uint8_t method);
  void registerPart(Client& one, schema::GraphSession::Client& session);
  void runPart(Client& one, schema::GraphSession::Client& session);
  void setVariable(Client& one, schema::GraphSession::Client& session);
  void sendTensors();
  void rawCall(uint8_t which);
  void surroundings(uint8_t what);

  Arguments arguments_{{}};
  fuzz::HeldQueues queues_;
  fuzz::ServeLoop loop_;
  std::array<std::unique_ptr<serving::PartServer>, kServing> servers_;
  std::array<uint64_t, kServing> held_{};  // at first, beside values
  std::unique_ptr<fuzz::HonestClient> honest_;
  std::array<Client, 2 * kServing> clients_;
  std::array<std::unique_ptr<fuzz::RawPeer>, kServing> raw_;
  std::map<std::pair<size_t, uint64_t>, fuzz::Known> known_;  // by task and plan
  fuzz::PendingCalls calls_{loop_.time()};
};

void Session::operation() {
  const uint8_t kind = arguments_.byte();
  const uint8_t method = arguments_.byte();
  switch (kind % 8) {
    case 0:
      return gateCall(method);
    case 1:
    case 2:
    case 3:
      return sessionCall(method);
    case 4:
      return sendTensors();
    case 5:
      return surroundings(method);
    case 6: {
      loop_.manner() = static_cast<fuzz::ServeLoop::Manner>(method % fuzz::ServeLoop::kManners);
      return;
    }
    default:
      return rawCall(method);
  }
}

void Session::gateCall(uint8_t method) {
  Client& one = client();
  switch (method % 5) {
    case 0:
    case 1:
      return hello(one);
    case 2:
      return tensors(one);
    case 3:
      return send(one.connection->bootstrap().castAs<schema::TaskGate>().statusRequest(), "status");
    default:  // disconnects, with calls pending
      one = {};
      return;
  }
}

// A client with the number of a session but not its secret is refused.
void Session::hello(Client& one) {
  auto request = one.connection->bootstrap().castAs<schema::TaskGate>().helloRequest();
  const bool is_honest = fillToken(request.initToken());
  auto sent = request.send();
  // A refused hello leaves the connection's own session in place.
  const bool is_another = one.session != nullptr;
  if (!is_another || arguments_.byte() % 2 == 0) one.session = sent.getSession();
  keep(sent.ignoreResult().then([is_honest, is_another] {
    FUZZ_CHECK(!is_honest);
    ++fuzz::reached()[is_another ? "another hello" : "hello"];
  }));
}

void Session::tensors(Client& one) {
  auto request = one.connection->bootstrap().castAs<schema::TaskGate>().tensorsRequest();
  const bool is_honest = fillToken(request.initToken());
  const uint8_t who = arguments_.byte();
  const TaskId caller = fuzz::servingTask(who % (kServing + 1));
  wire::encodeTask(caller, request.initCaller());
  wire::encodeTask(fuzz::servingTask(who < 240 ? one.serving : who % 2), request.initCallee());
  request.setIncarnation(fuzz::incarnationOf(caller).value + (who % 16 == 15));
  auto sent = request.send();
  one.sink = sent.getSink();
  keep(sent.ignoreResult().then(
      [is_honest] {
        FUZZ_CHECK(!is_honest);
        ++fuzz::reached()["sink"];
      },
      [is_honest](kj::Exception&& exception) {
        if (is_honest) ++fuzz::reached()["refused secret"];
        kj::throwFatalException(kj::mv(exception));
      }));
}

void Session::sessionCall(uint8_t method) {
  Client& one = client();
  KJ_IF_MAYBE (session, one.session) {
    switch (method % 10) {
      case 0:
      case 1:
      case 2:
        return registerPart(one, *session);
      case 3:
      case 4:
        return runPart(one, *session);
      case 5:
        return setVariable(one, *session);
      case 6: {
        auto request = session->releasePartRequest();
        request.setPlan(arguments_.byte() % 8);
        return send(request, "released");
      }
      case 7: {
        auto request = session->abortRequest();
        request.setStep(arguments_.count());
        const auto cause = arguments_.rest();
        request.setCause(kj::heapString(cause.data(), cause.size()));
        return send(request, "aborted");
      }
      case 8: {
        auto request = session->resetRequest();
        const uint8_t container = arguments_.byte();
        constexpr const char* kNames[] = {"a", "b", "c", ""};
        request.setContainer(container < 200 ? kNames[container % 4] : arguments_.text().cStr());
        return send(request, "reset");
      }
      default:
        return send(session->loadRequest(), "loaded");
    }
  }
}

void Session::registerPart(Client& one, schema::GraphSession::Client& session) {
  auto request = session.registerPartRequest();
  const uint64_t plan = arguments_.byte() % 8;
  request.setPlan(plan);
  const uint8_t kind = arguments_.byte();
  if (kind >= 250) {  // any message
    fuzz::AnyMessage any(arguments_.rest());
    request.setPart(any.root<schema::Part>());
    return send(request, "registered");
  }
  const auto part = fuzz::makePart(arguments_, fuzz::servingTask(one.serving));
  const uint64_t wrong = kind >= 240 ? 1 : 0;
  request.setDigest(engine::digestOf(*part) ^ wrong);
  wire::encodePart(part, fuzz::processesOf(arguments_), one.connection->stream(),
                   request.initPart());
  if (!part->edges.empty()) ++fuzz::reached()["edges"];
  if (known_.size() < kCallsMax) known_[{one.serving, plan}] = fuzz::knownOf(*part);
  send(request, "registered");
}

void Session::runPart(Client& one, schema::GraphSession::Client& session) {
  auto request = session.runPartRequest();
  const uint64_t plan = arguments_.byte() % 8;
  const uint8_t how = arguments_.byte();
  request.setPlan(plan);
  request.setStep(arguments_.count());
  request.setTrace(how % 8 == 7);
  const uint32_t deadline_ms = how < 250 ? how * 40 : arguments_.number<uint32_t>();
  request.setDeadlineMs(deadline_ms);
  const fuzz::Known& known = known_[{one.serving, plan}];
  auto feeds = request.initFeeds(static_cast<uint32_t>(known.feeds.size() + (how % 16 == 15)));
  for (uint32_t i = 0; i < feeds.size() && i < known.feeds.size(); ++i)
    fuzz::fillTensor(arguments_, known.feeds[i], feeds[i]);
  keep(request.send().ignoreResult().then(
           [] { ++fuzz::reached()["ran"]; },
           [](kj::Exception&& exception) {
             const Error error = net::toError(exception);
             ++fuzz::reached()[error.code() == ErrorCode::kDeadline ? "ended late" : "step failed"];
           }),
       std::chrono::milliseconds(deadline_ms));
}

void Session::setVariable(Client& one, schema::GraphSession::Client& session) {
  auto request = session.setVariableRequest();
  const uint8_t which = arguments_.byte();
  static const char* const kNames[] = {"a", "b", "c"};
  const TaskId task = fuzz::servingTask(which < 240 ? one.serving : which % 3);
  request.setDevice(graph::fullDevice(task).str());
  request.setContainer(kNames[which % 3]);
  request.setName(which >= 250 ? arguments_.text().cStr() : kNames[which / 3 % 3]);
  fuzz::fillTensor(arguments_, {DType::kFloat32, {fuzz::elementsOf(arguments_)}},
                   request.initValue());
  send(request, "variable");
}

void Session::sendTensors() {
  Client& one = client();
  KJ_IF_MAYBE (sink, one.sink) {
    auto request = sink->sendTensorsRequest();
    const uint64_t plan = arguments_.byte() % 8;
    request.setPlan(plan);
    request.setStep(arguments_.count());
    auto tensors = request.initTensors(arguments_.byte() % 4);
    for (auto tensor : tensors) {
      const uint8_t edge = arguments_.byte();
      tensor.setEdge(edge % (fuzz::kEdges + 1));
      const auto& received = known_[{one.serving, plan}].received;
      const auto expected = received.find(edge % (fuzz::kEdges + 1));
      const uint64_t bytes = expected == received.end() ? edge : expected->second;
      fuzz::fillBytes(arguments_, bytes, [&](uint32_t blobs) { return tensor.initBytes(blobs); });
    }
    keep(request.send().then(
        [](auto&& answer) { ++fuzz::reached()[answer.getOver() ? "over" : "taken"]; }));
  }
}

void Session::rawCall(uint8_t which) {
  std::unique_ptr<fuzz::RawPeer>& raw = raw_[which % kServing];
  if (which % 16 == 15) {
    raw = nullptr;
    return;
  }
  if (raw == nullptr)
    raw = std::make_unique<fuzz::RawPeer>(loop_.streamTo(which % kServing), 0, kInterfaces);
  raw->send(arguments_);
  ++fuzz::reached()["raw"];
}

// Time, threads, and the client beside.
void Session::surroundings(uint8_t what) {
  switch (what % 6) {
    case 0:
      return queues_.hold(true);
    case 1:
      return queues_.hold(false);
    case 2:
      return queues_.runOne(what / 6);
    case 3:
      return honestStep();
    case 4:
      if (calls_.drop(what / 6)) ++fuzz::reached()["dropped"];
      return;
    default:
      return advance(kSteps[what / 6 % std::size(kSteps)]);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static World& world = *[] {
    dtf::log::init("fuzz", dtf::log::Level::kError);
    return new World;  // never destroyed: kj's loop must end on the thread that made it
  }();
  const dtf::fuzz::NoTraces no_traces;
  const dtf::fuzz::Program program = dtf::fuzz::parseProgram(data, size);
  Session(world, program.world).run(program);
  return 0;
}
