// Every RPC method of a psd, ps/0 or ps/1 as the world says, and of a workerd, in any order with
// any arguments, from two workers, a ps and a peer that speaks the bare RPC protocol: real services
// over streams in memory or sockets, files on a disk in memory, time that the program moves.

#include <capnp/message.h>
#include <capnp/serialize-async.h>
#include <kj/async-io.h>

#include <array>
#include <csignal>
#include <vector>

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/host/ps_server.h"
#include "daemons/workerd/worker_gate.h"
#include "tests/fuzz/data_caller.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/no_traces.h"
#include "tests/fuzz/program.h"
#include "tests/fuzz/raw_peer.h"
#include "tests/fuzz/reached.h"
#include "tests/fuzz/replica_caller.h"
#include "tests/fuzz/rpc_messages.h"
#include "tests/fuzz/rpc_world.h"
#include "tests/fuzz/travel_calls.h"

namespace {

using namespace dtf;
using fuzz::Arguments;
using fuzz::kElements;
using fuzz::kWorkers;

const fuzz::MustReach kMustReach = {"save",
                                    "restore",
                                    "commitRestore",
                                    "decided",
                                    "averages",
                                    "raw",
                                    "worker status",
                                    "snapshot",
                                    "restoreSnapshot",
                                    "forgetSnapshots",
                                    "refill",
                                    "awaitReplica",
                                    "seed",
                                    "update",
                                    "fetched",
                                    "ended",
                                    "lease over",
                                    "rows",
                                    "save staying",
                                    "find staying",
                                    "fetch staying",
                                    "drop staying",
                                    "memory",
                                    "gradient in memory"};

constexpr uint8_t kSocketsFrom = 248;  // of the world: few, as sockets take twice as long as memory
constexpr size_t kCallsMax = 200, kCallsKeptMax = 64, kListMax = 64;
constexpr Duration kSteps[] = {std::chrono::milliseconds(1),    std::chrono::milliseconds(60),
                               std::chrono::milliseconds(300),  std::chrono::milliseconds(1100),
                               std::chrono::milliseconds(5600), std::chrono::seconds(11)};

// State that all inputs share.
struct World {
  net::Reactor reactor;
  fuzz::PreparedDisk disk;
  const checkpoint::SnapshotPlace snapshots{.folder = "/shm"};
};

class Follower final : public schema::SyncFollower::Server {
  kj::Promise<void> decided(DecidedContext) override { return kj::READY_NOW; }
};

// One client of the ps: a control and a bulk connection, and the results of their hellos.
struct Client {
  std::unique_ptr<net::RpcConnection> control_connection;
  std::unique_ptr<net::RpcConnection> data_connection;
  kj::Maybe<schema::PsControl::Client> control;
  kj::Maybe<schema::PsCheckpoint::Client> checkpoint;
  kj::Maybe<schema::SyncLeader::Client> leader;
  kj::Maybe<schema::PsData::Client> data;
  fuzz::DataCaller data_caller;
};

class Session {
 public:
  Session(World& world, uint8_t kind)
      : self_(kind % 2),
        durability_(fuzz::durabilityIn(kind)),
        task_(fuzz::taskOptions(self_, durability_)),
        loop_(world.reactor, kind >= kSocketsFrom),
        server_(std::make_unique<host::PsServer>(task_, loop_, loop_, loop_, world.disk.fresh(),
                                                 durability_ == cluster::Durability::kSnapshot
                                                     ? world.snapshots
                                                     : checkpoint::SnapshotPlace{})) {
    server_->startData(std::make_unique<optimizer::InlineUpdateRunner>());
    server_->start([] {}, [this] { ended_ = true; });
  }

  void run(const fuzz::Program& program) {
    for (size_t i = 0; i < std::min(kCallsMax, program.calls.size()) && !ended_; ++i) {
      arguments_ = Arguments(program.calls[i]);
      // An exception here comes from this side: a message that can't be built.
      const auto refused = kj::runCatchingExceptions([this] { operation(); });
      (void)refused;
      settle();
    }
    if (ended_) ++fuzz::reached()["ended"];
    close();
  }

 private:
  void settle() { loop_.settle(); }

  // Leaves the world as it was found.
  void close() {
    calls_.clear();
    for (Client& client : clients_) client = {};
    raw_ = {};
    replica_ = {};
    replica_connection_ = nullptr;
    worker_connection_ = nullptr;
    settle();
    loop_.close();
    settle();
    server_->stopData();
    settle();
    server_ = nullptr;
    worker_ = nullptr;
    settle();
    FUZZ_CHECK(loop_.time().idle());
  }

  void keep(kj::Promise<void> call) {
    if (calls_.size() >= kCallsKeptMax) calls_.erase(calls_.begin());
    calls_.push_back(call.eagerlyEvaluate([](kj::Exception&&) {}));
  }

  // `reaches`: the name that an answer without an error counts for; null: none.
  template <class Request>
  void send(Request&& request, const char* reaches = nullptr) {
    keep(request.send().ignoreResult().then([reaches] {
      if (reaches != nullptr) ++fuzz::reached()[reaches];
    }));
  }

  template <class Request>
  void sendEpoch(Request&& request, const char* reaches) {
    request.setEpoch(epochAt(arguments_.byte()));
    send(request, reaches);
  }

  std::unique_ptr<net::RpcConnection> connect(bool bulk) {
    auto [near, far] = streams();
    bulk ? server_->serveBulk(kj::mv(far), "fuzz") : server_->serveControl(kj::mv(far), "fuzz");
    return std::make_unique<net::RpcConnection>(kj::mv(near), net::RpcOptions{"psd"});
  }

  fuzz::StreamPair streams() {
    return loop_.hasSockets() ? fuzz::socketStreams(loop_.reactor()) : fuzz::memoryStreams();
  }

  Client& client() { return clients_[arguments_.byte() % clients_.size()]; }

  void operation();
  void gateCall(uint8_t method);
  void controlCall(uint8_t method);
  void checkpointCall(uint8_t method);
  void dataCall(uint8_t method);
  // Most calls are of that epoch, some of an older or a later one.
  uint64_t epochAt(uint64_t step) const {
    if (step % 16 < 14) return epoch_;
    return step % 16 == 14 ? replication::kFirstEpoch : replication::nextEpoch(epoch_, 1);
  }
  void leaderCall();
  void followerCall();
  void replicaCall(uint8_t method);
  void workerCall();
  void fillCut(schema::Held::Cut::Builder cut) {
    cut.setStep(arguments_.count());
    cut.setEpoch(epochAt(cut.getStep()));
  }
  void timeOrSignal(uint8_t what);
  void rawCall(uint8_t which);

  Arguments arguments_{{}};
  const uint32_t self_;  // the ps that is fuzzed
  const cluster::Durability durability_;
  const cluster::TaskOptions task_;
  const workerd::WorkerStatus worker_status_;
  fuzz::PeerLoop loop_;
  std::unique_ptr<wire::ConnectionSet> worker_ =
      std::make_unique<wire::ConnectionSet>(loop_, [](const void*) {});
  std::unique_ptr<net::RpcConnection> worker_connection_;
  std::unique_ptr<host::PsServer> server_;
  bool ended_ = false;                                 // the ps has nothing more to do
  std::array<std::unique_ptr<fuzz::RawPeer>, 2> raw_;  // control, bulk
  std::array<Client, 2> clients_;
  std::unique_ptr<net::RpcConnection> replica_connection_;  // of the ps that keeps its replica here
  fuzz::ReplicaCaller replica_;
  std::vector<kj::Promise<void>> calls_;
  uint64_t epoch_ = replication::kFirstEpoch;  // an honest chief's epoch
  std::vector<uint64_t> last_cut_;             // the last position requested; `save` names it again
};

void Session::operation() {
  const uint8_t kind = arguments_.byte();
  const uint8_t method = arguments_.byte();
  switch (kind % 8) {
    case 0:
      return gateCall(method);
    case 1:
      return controlCall(method);
    case 2:
      return checkpointCall(method);
    case 3:
      return dataCall(method);
    case 4:
      return self_ == 0 || method % 4 == 3 ? leaderCall() : followerCall();
    case 5:
      return durability_ == cluster::Durability::kReplica ? replicaCall(method) : workerCall();
    case 6:
      return timeOrSignal(method);
    default:
      return rawCall(method);
  }
}

void Session::timeOrSignal(uint8_t what) {
  if (what % 8 == 7) return server_->onSignal(SIGTERM);
  loop_.time().advance(kSteps[what % std::size(kSteps)], [this] { settle(); });
  for (const replication::Member& member : server_->host().shard().status().members)
    if (member.state == replication::MemberState::kLost) ++fuzz::reached()["lease over"];
}

void Session::rawCall(uint8_t which) {
  std::unique_ptr<fuzz::RawPeer>& raw = raw_[which % 2];
  if (which % 16 == 15) {
    raw = nullptr;
    return;
  }
  if (raw == nullptr) {
    auto [near, far] = streams();
    which % 2 == 0 ? server_->serveControl(kj::mv(far), "raw")
                   : server_->serveBulk(kj::mv(far), "raw");
    raw = std::make_unique<fuzz::RawPeer>(kj::mv(near), self_);
  }
  raw->send(arguments_);
  ++fuzz::reached()["raw"];
}

void Session::gateCall(uint8_t method) {
  Client& one = client();
  if (method % 5 == 4) {  // disconnects, with calls pending
    one = {};
    return;
  }
  if (method % 5 == 3) {
    if (one.data_connection == nullptr) one.data_connection = connect(true);
    auto request = one.data_connection->bootstrap().castAs<schema::PsDataGate>().helloRequest();
    fuzz::fillHello(arguments_, self_, false, durability_, request.initHello());
    auto sent = request.send();
    one.data = sent.getData();
    keep(sent.ignoreResult());
    return;
  }
  if (one.control_connection == nullptr) one.control_connection = connect(false);
  auto gate = one.control_connection->bootstrap().castAs<schema::PsGate>();
  if (method % 5 == 0) {
    auto request = gate.helloRequest();
    fuzz::fillHello(arguments_, self_, false, durability_, request.initHello());
    auto sent = request.send();
    one.control = sent.getControl();
    keep(sent.ignoreResult());
  } else if (method % 5 == 1) {
    auto request = gate.peerRequest();
    fuzz::fillHello(arguments_, self_, true, durability_, request.initHello());
    request.setFollower(kj::heap<Follower>());
    auto sent = request.send();
    one.leader = sent.getLeader();
    keep(sent.ignoreResult());
  } else {
    send(gate.statusRequest());
  }
}

void Session::controlCall(uint8_t method) {
  Client& one = client();
  KJ_IF_MAYBE (control, one.control) {
    switch (method % 7) {
      case 0: {
        auto request = control->declareRequest();
        fuzz::fillModel(arguments_, self_, durability_ == cluster::Durability::kReplica, request);
        return send(request);
      }
      case 1:
        return send(control->waitInitialisedRequest());
      case 2:
        return send(control->heartbeatRequest());
      case 3: {
        auto request = control->barrierRequest();
        request.setName(arguments_.text());
        request.setPassedBefore(arguments_.byte() % 2 == 0);
        return send(request);
      }
      case 4:
        return send(control->finishRequest());
      case 5: {
        auto sent = control->superviseRequest().send();
        one.checkpoint = sent.getCheckpoint();
        keep(sent.ignoreResult());
        return;
      }
      default:
        return send(control->requestStopRequest());
    }
  }
}

void Session::checkpointCall(uint8_t method) {
  KJ_IF_MAYBE (checkpoint, client().checkpoint) {
    if (method >= 236 && method < 252)
      return fuzz::travelCall(*checkpoint, method, arguments_, last_cut_,
                              [this](auto&&... sent) { send(sent...); });
    switch (method < 192 ? method % 6 : method < 252 ? 6 + method % 4 : 10) {
      case 0: {
        auto request = checkpoint->positionRequest();
        request.setHold(arguments_.byte() % 2 == 1);
        return send(request);
      }
      case 1: {
        auto request = checkpoint->cutRequest();
        last_cut_.resize(arguments_.byte() % kListMax);
        for (uint64_t& at : last_cut_) at = arguments_.count();
        fuzz::fillPosition(last_cut_, request);
        request.setEpoch(epoch_);
        return send(request);
      }
      case 2:
        return send(checkpoint->releaseHoldRequest());
      case 3: {
        auto request = checkpoint->saveRequest();
        request.setFolder(arguments_.folder());
        if (arguments_.byte() == 1) last_cut_.push_back(arguments_.count());
        fuzz::fillPosition(last_cut_, request);
        return send(request, "save");
      }
      case 4: {
        auto request = checkpoint->restoreRequest();
        request.setFolder(arguments_.folder());
        return send(request, "restore");
      }
      case 6: {
        auto request = checkpoint->snapshotRequest();
        fuzz::fillPosition(last_cut_, request);
        fillCut(request.initCut());
        request.setKeeps(arguments_.byte() % 2 == 1);
        fillCut(request.initKeep());
        return send(request, "snapshot");
      }
      case 7: {
        auto request = checkpoint->restoreSnapshotRequest();
        fillCut(request.initCut());
        return send(request, "restoreSnapshot");
      }
      case 8:
        return send(checkpoint->forgetSnapshotsRequest(), "forgetSnapshots");
      case 9:
        return sendEpoch(checkpoint->refillRequest(), "refill");
      case 10:
        return sendEpoch(checkpoint->awaitReplicaRequest(), "awaitReplica");
      default: {
        auto request = checkpoint->commitRestoreRequest();
        request.setCutEpoch(epoch_);
        epoch_ = replication::nextEpoch(epoch_, 0);
        request.setEpoch(epoch_);
        return send(request, "commitRestore");
      }
    }
  }
}

void Session::dataCall(uint8_t method) {
  Client& one = client();
  KJ_IF_MAYBE (data, one.data)
    keep(one.data_caller.call(
        method, arguments_, epoch_, [this](uint64_t step) { return epochAt(step); }, *data));
}

void Session::leaderCall() {
  KJ_IF_MAYBE (leader, client().leader) {
    auto request = leader->receivedRequest();
    request.setStep(arguments_.count());
    request.setEpoch(epochAt(request.getStep()));
    request.setRank(static_cast<uint32_t>(arguments_.count()));
    return send(request);
  }
}

// A decision of ps/0 that ps/1 receives.
void Session::followerCall() {
  KJ_IF_MAYBE (follower, loop_.follower()) {
    auto request = follower->decidedRequest();
    request.setStep(arguments_.count());
    request.setEpoch(epochAt(request.getStep()));
    auto ranks = request.initRanks(arguments_.byte() % 4);
    for (uint32_t i = 0; i < ranks.size(); ++i)
      ranks.set(i, static_cast<uint32_t>(arguments_.count()));
    return send(request, "decided");
  }
}

void Session::replicaCall(uint8_t method) {
  if (replica_connection_ == nullptr) replica_connection_ = connect(true);
  keep(replica_.call(method, arguments_, self_, epoch_, *replica_connection_));
}

void Session::workerCall() {
  if (arguments_.byte() % 4 == 3) {
    worker_connection_ = nullptr;
    return;
  }
  if (worker_connection_ == nullptr) {
    auto [near, far] = fuzz::memoryStreams();
    worker_->serve(kj::mv(far), "fuzz",
                   [this](const wire::ConnectionRef&) -> capnp::Capability::Client {
                     return workerd::makeWorkerGate(task_, worker_status_);
                   });
    worker_connection_ =
        std::make_unique<net::RpcConnection>(kj::mv(near), net::RpcOptions{"workerd"});
  }
  auto gate = worker_connection_->bootstrap().castAs<schema::WorkerGate>();
  send(gate.statusRequest(), "worker status");
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
