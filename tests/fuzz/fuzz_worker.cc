// A worker with hostile ps: the calls of a exchange client and a checkpoint client, in any order
// that a worker may use. Its two ps answer by the program, or speak the bare RPC protocol
// (hostile_ps.h, raw_peer.h). Every call ends with an answer or an error, within its client's
// deadlines.

#include <array>

#include "common/base/log.h"
#include "common/net/connector.h"
#include "common/replication/epoch.h"
#include "common/wire/checkpoint/checkpoint_calls.h"
#include "common/wire/checkpoint/shard_calls.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/hostile_ps.h"
#include "tests/fuzz/no_traces.h"
#include "tests/fuzz/program.h"
#include "tests/fuzz/raw_peer.h"
#include "tests/fuzz/reached.h"
#include "tests/fuzz/rpc_messages.h"

namespace {

using namespace dtf;

using fuzz::Arguments;
using fuzz::Asked;
using fuzz::kElements;

const fuzz::MustReach kMustReach = {"declared", "pulled",   "exchanged", "averages", "saved",
                                    "restored", "finished", "failed",    "late",     "arena named"};

constexpr uint32_t kPsTasks = 2;
constexpr size_t kCallsMax = 200;
constexpr double kDiskSeconds = 4;
// Longer than any call may take, even if the ps answers every round at the last moment.
constexpr Duration kDeadlinesOver = std::chrono::seconds(60);
constexpr int kDeadlineRounds = 64;  // each counts as a moment for a loop that judges its peers
constexpr Duration kSteps[] = {std::chrono::milliseconds(1), std::chrono::milliseconds(300),
                               std::chrono::milliseconds(1100), std::chrono::seconds(4),
                               std::chrono::seconds(13)};

// Bits of the world: arenas are shared in memory, or sent as bfloat16.
constexpr uint8_t kShares = 0x80, kNarrows = 0x40;

wire::RpcClientOptions clientOptions(uint8_t world) {
  wire::RpcClientOptions options;
  options.link.job = fuzz::kJob;
  options.link.self = {JobKind::kWorker, 0};
  options.link.incarnation = Incarnation{1};
  options.link.timeouts.heartbeat_seconds = 0.5;
  options.link.timeouts.lease_seconds = 2;
  options.link.timeouts.start_seconds = 5;
  options.link.timeouts.step_seconds = 3;
  options.link.timeouts.finish_seconds = 5;
  options.link.timeouts.rejoin_seconds = 3;
  options.link.share_from_bytes =
      (world & kShares) != 0 ? std::optional<uint64_t>(0) : std::nullopt;
  for (uint16_t i = 0; i < kPsTasks; ++i) options.ps.push_back({"ps", i});
  return options;
}

arena::ModelDeclaration declaration(bool sync, bool narrows) {
  arena::ModelDeclaration model;
  model.layout = arena::makeLayout(
      {{"v", Shape{2 * kElements}, {{0, 0, kElements}, {1, kElements, kElements}}}}, kPsTasks);
  model.optimizer.learning_rate = 0.1;
  using Mode = cluster::ReplicationSpec::Mode;
  model.replication = {sync ? Mode::kSync : Mode::kAsync, 2, 2};
  if (narrows && !sync) model.replication = {.mode = Mode::kBounded, .staleness = 1};
  using Dtype = cluster::ReplicationSpec::TransferDtype;
  if (narrows) model.replication.transfer_dtype = sync ? Dtype::kBFloat16 : Dtype::kInt8;
  model.steps = 20;
  return model;
}

// The worker's loop: its connections end at the ps here.
// Borrows: `reactor`.
class WorkerLoop final : public fuzz::FuzzLoop {
 public:
  // `world` chooses the connections that are raw, and whether those are sockets.
  WorkerLoop(net::Reactor& reactor, uint8_t world)
      : FuzzLoop(reactor, (world & kSockets) != 0 && (world & kRaw) != 0), world_(world) {}
  ~WorkerLoop() noexcept override = default;

  kj::Promise<kj::Own<net::MessageStream>> connect(std::string, uint16_t port,
                                                   net::ConnectOptions options,
                                                   const net::Limits& limits,
                                                   std::shared_ptr<net::BufferPool>) override {
    const bool bulk = options.kind == net::ConnectionKind::kBulk;
    const uint32_t which = 2 * port + (bulk ? 1 : 0);
    if ((world_ >> which & 1) == 0) {
      fuzz::StreamPair streams = fuzz::memoryStreams();
      served_->serve(kj::mv(streams.far), "worker", [&](const wire::ConnectionRef& connection) {
        return bulk ? fuzz::hostileDataGate(answers_, connection)
                    : fuzz::hostileGate(answers_, connection);
      });
      return kj::mv(streams.near);
    }
    fuzz::StreamPair streams =
        hasSockets() ? fuzz::socketStreams(reactor(), limits) : fuzz::memoryStreams();
    raw_[which] = std::make_unique<fuzz::RawPeer>(kj::mv(streams.far), port);
    return kj::mv(streams.near);
  }

  fuzz::Answers& answers() { return answers_; }
  std::unique_ptr<fuzz::RawPeer>& raw(size_t which) { return raw_[which]; }
  // Ends the connections; to be called before the reactor goes.
  void close() {
    raw_ = {};
    served_ = nullptr;
    answers_.giveUp();
  }

 private:
  static constexpr uint8_t kRaw = 0x0f;
  static constexpr uint8_t kSockets = 0x10;

  const uint8_t world_;
  fuzz::Answers answers_{time()};
  std::unique_ptr<wire::ConnectionSet> served_ =
      std::make_unique<wire::ConnectionSet>(*this, [](const void*) {});
  std::array<std::unique_ptr<fuzz::RawPeer>, 2 * kPsTasks> raw_;
};

// One thread of the worker: makes one call at a time, and none after an error.
class Caller {
 public:
  bool free() const { return !busy_ && !failed_; }
  bool busy() const { return busy_; }
  bool failed() const { return failed_; }

  template <class T>
  void start(const char* what, kj::Promise<T> call) {
    busy_ = true;
    under_way_ = call.then([this, what](auto&&...) {
                       busy_ = false;
                       ++fuzz::reached()[what];
                     })
                     .eagerlyEvaluate([this](kj::Exception&&) {
                       busy_ = false;
                       failed_ = true;
                       ++fuzz::reached()["failed"];
                     });
  }
  void drop() { under_way_ = nullptr; }

 private:
  bool busy_ = false;
  bool failed_ = false;
  kj::Promise<void> under_way_ = nullptr;
};

class Session {
 public:
  Session(net::Reactor& reactor, uint8_t world)
      : loop_(reactor, world),
        model_(declaration(world >> 5 & 1, (world & kNarrows) != 0)),
        options_(clientOptions(world)) {
    data_ = std::make_unique<wire::DataCalls>(loop_, options_);
    wire::ControlCalls::Events events;
    events.on_lost = [this](const Error& error) { data_->fail(error); };
    control_ = std::make_unique<wire::ControlCalls>(loop_, options_, std::move(events));
  }

  void run(const fuzz::Program& program) {
    for (size_t i = 0; i < std::min(kCallsMax, program.calls.size()); ++i) {
      arguments_ = Arguments(program.calls[i]);
      operation(program.calls[i]);
      settle();
      if (training_.failed() || checkpoint_thread_.failed()) break;
    }
    // No call outlasts its deadlines, whatever the ps do; a ps that is gone ends all of them.
    loop_.answers().clear();
    for (int i = 0; i < kDeadlineRounds && busy(); ++i)
      loop_.time().advance(kDeadlinesOver, [this] { settle(); });
    FUZZ_CHECK(!busy());
    close();
  }

 private:
  bool busy() const { return training_.busy() || checkpoint_thread_.busy(); }

  void settle() { loop_.settle(); }

  // Leaves the reactor as it was found.
  void close() {
    training_.drop();
    checkpoint_thread_.drop();
    shards_ = nullptr;
    checkpoint_ = nullptr;
    control_ = nullptr;
    data_ = nullptr;
    settle();
    loop_.close();
    settle();
    FUZZ_CHECK(loop_.time().idle());
  }

  void operation(const std::string& call);
  void trainingCall(uint8_t method);
  void checkpointCall(uint8_t method);
  void travelCall(uint8_t method, const CutPosition& position);
  void readParameters();

  WorkerLoop loop_;
  const arena::ModelDeclaration model_;
  const wire::RpcClientOptions options_;
  std::unique_ptr<wire::DataCalls> data_;
  std::unique_ptr<wire::ControlCalls> control_;
  std::unique_ptr<wire::CheckpointCalls> checkpoint_;
  std::unique_ptr<wire::ShardCalls> shards_;
  Arguments arguments_{{}};
  Caller training_;
  Caller checkpoint_thread_;
  bool declared_ = false;
  bool pulled_ = false;  // parameters are there
  bool supervising_ = false;
  bool cutting_ = false;
  const std::vector<float> zeros_ = std::vector<float>(kElements);
};

void Session::operation(const std::string& call) {
  const uint8_t kind = arguments_.byte();
  const uint8_t what = arguments_.byte();
  switch (kind % 5) {
    case 0:
      if (training_.free()) trainingCall(what);
      return;
    case 1:
      if (checkpoint_thread_.free()) checkpointCall(what);
      return;
    case 2:
      return loop_.answers().add(static_cast<Asked>(what % fuzz::kAskedKinds),
                                 call.substr(std::min<size_t>(2, call.size())));
    case 3: {
      const bool waited = busy();
      loop_.time().advance(kSteps[what % std::size(kSteps)], [this] { settle(); });
      if (waited && !busy()) ++fuzz::reached()["late"];
      return;
    }
    default: {
      std::unique_ptr<fuzz::RawPeer>& raw = loop_.raw(what % (2 * kPsTasks));
      if (raw == nullptr) return;
      if (what >= 240) {
        raw = nullptr;
      } else {
        raw->send(arguments_);
      }
      return;
    }
  }
}

// In the order that exchange::ExchangeClient requires.
void Session::trainingCall(uint8_t method) {
  if (!declared_) {
    return training_.start("declared", control_->opened()
                                           .then([this] { return control_->declare(model_); })
                                           .then([this] { return data_->open(model_); })
                                           .then([this] { declared_ = true; }));
  }
  readParameters();
  switch (method % 7) {
    case 0: {
      const std::span<const float> values[] = {zeros_, zeros_};
      return training_.start("initialised", data_->initialise(values, replication::kFirstEpoch));
    }
    case 1:
      return training_.start("waited", control_->waitInitialised());
    case 2:
      pulled_ = false;
      return training_.start("pulled", data_->pull().then([this](auto&&) { pulled_ = true; }));
    case 3:
      pulled_ = false;
      return training_.start(
          "exchanged",
          data_->exchange(arguments_.count(), static_cast<uint32_t>(arguments_.count()), 0.5F)
              .then([this](auto&& state) {
                pulled_ = state.outcome != replication::Outcome::kQueued;
              }));
    case 4:
      return training_.start("averages", data_->pullAside(false).then([this] {
        float sum = 0;
        for (uint32_t ps = 0; ps < kPsTasks; ++ps)
          for (uint64_t i = 0; i < kElements; ++i) sum += data_->aside(ps)[i];
        fuzz::use(sum);
      }));
    case 5:
      return training_.start("barrier",
                             control_->barrier(arguments_.byte() % 2 == 0 ? "start" : "trained"));
    default:
      return training_.start("finished", control_->finish());
  }
}

// The training thread may read them until its next call, wherever they lie.
void Session::readParameters() {
  if (!pulled_) return;
  float sum = 0;
  for (uint32_t ps = 0; ps < kPsTasks; ++ps) {
    for (uint64_t i = 0; i < kElements; ++i) {
      sum += data_->parameters(ps)[i];
      data_->gradients(ps)[i] = 1;
    }
  }
  fuzz::use(sum);
}

// In the order that checkpoint::CheckpointClient requires.
void Session::checkpointCall(uint8_t method) {
  if (!declared_) return;
  if (!supervising_) {
    checkpoint_ = std::make_unique<wire::CheckpointCalls>(*control_, kDiskSeconds);
    shards_ = std::make_unique<wire::ShardCalls>(*checkpoint_);
    return checkpoint_thread_.start(
        "supervised", checkpoint_->open().then([this](auto&&) { supervising_ = true; }));
  }
  const CutPosition position(arguments_.byte() % 4, arguments_.count());
  if (method >= 240) return travelCall(method, position);
  switch (method % 6) {
    case 0:
      return checkpoint_thread_.start("positions",
                                      checkpoint_->positions(arguments_.byte() % 2 == 1));
    case 1:
      return checkpoint_thread_.start("released", checkpoint_->releaseHold());
    case 2:
      cutting_ = true;
      return checkpoint_thread_.start("cut started",
                                      checkpoint_->startCut(position, replication::kFirstEpoch));
    case 3:
      if (!std::exchange(cutting_, false)) return;
      return checkpoint_thread_.start("cut", checkpoint_->awaitCut());
    case 4:
      return checkpoint_thread_.start("saved", checkpoint_->save("step-7.tmp-1.1", position));
    default:
      return checkpoint_thread_.start(
          "restored", checkpoint_->restore({"step-5", 0, 5, replication::kFirstEpoch}));
  }
}

// Calls of checkpoint::ShardTransfer.
void Session::travelCall(uint8_t method, const CutPosition& position) {
  const std::vector<float> values(1 + arguments_.byte(), 1.0f);
  switch (method % 4) {
    case 0:
      return checkpoint_thread_.start("staged", shards_->stage(position));
    case 1: {
      const uint64_t offset = arguments_.byte();
      return checkpoint_thread_.start("fetched",
                                      shards_->fetch(0, offset, offset + 1 + arguments_.byte()));
    }
    case 2:
      return checkpoint_thread_.start("brought",
                                      shards_->bring(0, {0, arguments_.count()}, values));
    default:
      return checkpoint_thread_.start("committed",
                                      shards_->commit({"step-5", 0, 5, replication::kFirstEpoch}));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static dtf::net::Reactor& reactor = *[] {
    dtf::log::init("fuzz", dtf::log::Level::kError);
    return new dtf::net::Reactor;  // never destroyed: kj's loop must end on the thread that made it
  }();
  const dtf::fuzz::NoTraces no_traces;
  const dtf::fuzz::Program program = dtf::fuzz::parseProgram(data, size);
  Session(reactor, program.world).run(program);
  return 0;
}
