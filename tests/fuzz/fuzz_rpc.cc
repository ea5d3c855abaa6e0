// Every RPC method of a psd, ps/0 or ps/1 as the first byte says, and of a workerd, in any order
// with any arguments, from up to five connections: real services over sockets or streams in memory,
// as the first byte says too, files on a disk in memory. The bytes are a program: each operation takes its arguments from what follows, 0
// when there is no more.

#include <kj/async-io.h>

#include <array>
#include <vector>

#include <capnp/message.h>
#include <capnp/serialize-async.h>

#include "common/base/error.h"
#include "common/base/log.h"
#include "daemons/psd/ps_server.h"
#include "daemons/workerd/worker_gate.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/reached.h"
#include "tests/fuzz/rpc_bytes.h"
#include "tests/fuzz/rpc_world.h"
#include "tests/support/simulated_disk.h"

namespace {

using namespace dtf;

using fuzz::kElements;
using fuzz::kWorkers;

const fuzz::MustReach kMustReach = {"save",    "restore",       "commitRestore",
                                    "decided", "worker status", "averages"};

constexpr const char* kJob = "fuzz";
constexpr size_t kOperationsMax = 200;
constexpr size_t kCallsMax = 64;
constexpr size_t kListMax = 64;

using fuzz::Bytes;

cluster::TaskOptions taskOptions(uint32_t ps_task) {
  cluster::TaskOptions options;
  options.task = {JobKind::kPs, ps_task};
  options.job.job = kJob;
  options.job.run_dir = fuzz::kRunDir;
  options.job.cluster.ps.resize(2);
  for (cluster::TaskSpec& task : options.job.cluster.ps) task.address = {"127.0.0.1", 1};
  options.job.cluster.worker.resize(kWorkers);
  return options;
}

class Follower final : public schema::SyncFollower::Server {
  kj::Promise<void> decided(DecidedContext) override { return kj::READY_NOW; }
};

// One client of the ps: a control and a bulk connection with what their hellos returned.
struct Client {
  std::unique_ptr<net::RpcConnection> control_connection;
  std::unique_ptr<net::RpcConnection> data_connection;
  kj::Maybe<schema::PsControl::Client> control;
  kj::Maybe<schema::PsCheckpoint::Client> checkpoint;
  kj::Maybe<schema::SyncLeader::Client> leader;
  kj::Maybe<schema::PsData::Client> data;
};

class Session {
 public:
  Session(Bytes bytes, uint8_t kind)
      : bytes_(bytes), self_(kind % 2), over_sockets_(kind % 4 >= 2), task_(taskOptions(self_)) {
    fuzz::prepareDisk(disk_);
    server_ = std::make_unique<psd::PsServer>(task_, loop_, loop_, loop_, disk_);
    server_->startData(std::make_unique<ps::InlineUpdateRunner>());
  }

  void run() {
    for (size_t i = 0; i < kOperationsMax && !bytes_.empty(); ++i) {
      // What is thrown here is this side's own: a message that can't be built.
      const auto refused = kj::runCatchingExceptions([this] { operation(); });
      (void)refused;
      poll();
    }
    calls_.clear();
    for (Client& client : clients_) client = {};
    worker_connection_ = nullptr;
    poll();
    loop_.close();
    poll();
    server_->stopData();
    poll();
    server_ = nullptr;
    poll();
  }

 private:
  void poll() {
    for (int i = 0; i < 4; ++i) {
      reactor_.ioc.poll();
      reactor_.wait_scope.poll();
    }
  }

  void keep(kj::Promise<void> call) {
    if (calls_.size() >= kCallsMax) calls_.erase(calls_.begin());
    calls_.push_back(call.eagerlyEvaluate([](kj::Exception&&) {}));
  }

  // `reaches`: what an answer without an error counts as, if anything.
  template <class Request>
  void send(Request&& request, const char* reaches = nullptr) {
    keep(request.send().ignoreResult().then([reaches] {
      if (reaches != nullptr) ++fuzz::reached()[reaches];
    }));
  }

  std::unique_ptr<net::RpcConnection> connect(bool bulk) {
    net::AsioEventPort::Io io(reactor_.port);
    auto [near, far] = over_sockets_ ? fuzz::socketStreams(reactor_) : fuzz::pipeStreams();
    bulk ? server_->serveBulk(kj::mv(far), "fuzz") : server_->serveControl(kj::mv(far), "fuzz");
    return std::make_unique<net::RpcConnection>(kj::mv(near), net::RpcOptions{"psd"});
  }

  Client& client() { return clients_[bytes_.byte() % clients_.size()]; }

  void fillTask(schema::Task::Builder task) {
    const uint8_t kind = bytes_.byte();
    task.setJob(kind < 200 ? schema::JobKind::WORKER : static_cast<schema::JobKind>(kind % 4));
    task.setIndex(kind < 200 ? kind % (kWorkers + 1) : static_cast<uint32_t>(bytes_.count()));
  }

  void fillHello(schema::Hello::Builder hello, bool from_ps) {
    const uint8_t flaw = bytes_.byte();
    hello.setJob(flaw == 1 ? bytes_.text() : kj::StringPtr(kJob));
    fillTask(hello.initCaller());
    if (from_ps) {
      hello.getCaller().setJob(schema::JobKind::PS);
      hello.getCaller().setIndex(flaw == 2 ? 0 : 1);
    }
    hello.setIncarnation(flaw == 3 ? bytes_.number<uint64_t>() : 1 + flaw % 2);
    if (flaw == 4) return fillTask(hello.initCallee());
    hello.initCallee().setJob(schema::JobKind::PS);
    hello.getCallee().setIndex(self_);
  }

  // A model of one variable, whole on this ps, that bytes may spoil; or any message at all.
  void fillModel(schema::PsControl::DeclareParams::Builder params) {
    const uint8_t kind = bytes_.byte();
    if (kind >= 200) return fillAnyModel(params);
    auto model = params.initModel();
    auto variable = model.initVariables(1)[0];
    variable.setName(kind == 1 ? bytes_.text() : kj::StringPtr("v"));
    auto shape = variable.initShape(1);
    shape.set(0, static_cast<int64_t>(kind == 2 ? bytes_.number<uint64_t>() : kElements));
    auto shards = model.initShards(kind == 3 ? bytes_.byte() % 4 : 2);
    if (shards.size() > self_) {
      shards[self_].setElements(kind == 4 ? bytes_.number<uint64_t>() : kElements);
      auto slice = shards[self_].initSlices(1)[0];
      slice.setVariable(kind == 5 ? bytes_.number<uint32_t>() : 0);
      slice.setBegin(kind == 6 ? bytes_.number<uint64_t>() : 0);
      slice.setCount(kind == 7 ? bytes_.number<uint64_t>() : kElements);
      slice.setOffset(kind == 8 ? bytes_.number<uint64_t>() : 0);
    }
    auto optimizer = model.initOptimizer();
    optimizer.setKind(kind == 9 ? bytes_.byte() : 1 + kind % 3);
    optimizer.setLearningRate(kind == 10 ? bytes_.number<double>() : 0.1);
    optimizer.setInitialAccumulatorValue(0.1);
    optimizer.setBeta1(kind == 11 ? bytes_.number<double>() : 0.9);
    optimizer.setBeta2(0.999);
    optimizer.setEpsilon(1e-8);
    optimizer.setMovingAverageDecay(kind == 16 ? 0.5 : 0);
    optimizer.initSchedule().setKind(kind == 12 ? bytes_.byte() : 1);
    auto replication = model.initReplication();
    replication.setMode(kind == 13 ? bytes_.byte() : 1 + kind / 100);
    const uint32_t replicas = kind < 100 ? 0 : kind == 14 ? bytes_.number<uint32_t>() : kWorkers;
    replication.setReplicasToAggregate(kind >= 150 ? 1 : replicas);
    replication.setTotalNumReplicas(replicas);
    model.setSteps(kind == 15 ? bytes_.number<uint64_t>() : 20);
  }

  void fillAnyModel(schema::PsControl::DeclareParams::Builder params) {
    const std::string_view taken = bytes_.take(8 * bytes_.byte());
    std::vector<capnp::word> words((taken.size() + 7) / 8 + 1);
    std::memcpy(words.data(), taken.data(), taken.size());
    const kj::ArrayPtr<const capnp::word> segments[] = {{words.data(), words.size()}};
    capnp::SegmentArrayMessageReader reader(segments);
    params.setModel(reader.getRoot<schema::Model>());
  }

  template <class List>
  void fillArena(List&& init) {
    const uint8_t kind = bytes_.byte();
    auto chunks = init(kind < 200 ? 1u : kind % 5u);
    for (uint32_t i = 0; i < chunks.size(); ++i) {
      const size_t size = kind < 200 ? kElements * sizeof(float) : bytes_.byte();
      auto chunk = chunks.init(i, static_cast<uint32_t>(size));
      const std::string_view values = bytes_.take(std::min<size_t>(size, kind % 16));
      if (!values.empty()) std::memcpy(chunk.begin(), values.data(), values.size());
    }
  }

  void operation();
  void gateCall(uint8_t method);
  void controlCall(uint8_t method);
  void checkpointCall(uint8_t method);
  void dataCall(uint8_t method);
  void leaderCall(uint8_t method);
  void followerCall();
  void workerCall();

  Bytes bytes_;
  const uint32_t self_;  // the ps that is fuzzed
  const bool over_sockets_;
  const cluster::TaskOptions task_;
  const workerd::WorkerStatus worker_status_;
  net::Reactor reactor_;
  fuzz::PeerLoop loop_{reactor_};
  testing::SimulatedDisk disk_;
  daemons::ConnectionSet worker_{loop_, [](const void*) {}};
  std::unique_ptr<net::RpcConnection> worker_connection_;
  std::unique_ptr<psd::PsServer> server_;
  std::array<Client, 2> clients_;
  std::vector<kj::Promise<void>> calls_;
  std::vector<uint64_t> last_cut_;  // the place that was asked for last; `save` names it again
};

void Session::operation() {
  const uint8_t code = bytes_.byte();
  switch (code % 6) {
    case 0:
      return gateCall(code / 6);
    case 1:
      return controlCall(code / 6);
    case 2:
      return checkpointCall(code / 6);
    case 3:
    case 4:
      return dataCall(code / 6);
    default:
      return self_ == 0 || code / 6 % 4 == 3 ? leaderCall(code / 6) : followerCall();
  }
}

void Session::gateCall(uint8_t method) {
  if (method % 6 == 5) return workerCall();
  Client& one = client();
  if (method % 6 == 4) {  // gone, with what it still waits for
    one = {};
    return;
  }
  if (method % 6 == 3) {
    if (one.data_connection == nullptr) one.data_connection = connect(true);
    auto request = one.data_connection->bootstrap().castAs<schema::PsDataGate>().helloRequest();
    fillHello(request.initHello(), false);
    auto sent = request.send();
    one.data = sent.getData();
    keep(sent.ignoreResult());
    return;
  }
  if (one.control_connection == nullptr) one.control_connection = connect(false);
  auto gate = one.control_connection->bootstrap().castAs<schema::PsGate>();
  if (method % 6 == 0) {
    auto request = gate.helloRequest();
    fillHello(request.initHello(), false);
    auto sent = request.send();
    one.control = sent.getControl();
    keep(sent.ignoreResult());
  } else if (method % 6 == 1) {
    auto request = gate.peerRequest();
    fillHello(request.initHello(), true);
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
        fillModel(request);
        return send(request);
      }
      case 1:
        return send(control->waitInitialisedRequest());
      case 2:
        return send(control->heartbeatRequest());
      case 3: {
        auto request = control->barrierRequest();
        request.setName(bytes_.text());
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
    switch (method % 6) {
      case 0: {
        auto request = checkpoint->positionRequest();
        request.setHold(bytes_.byte() % 2 == 1);
        return send(request);
      }
      case 1: {
        auto request = checkpoint->cutRequest();
        auto position = request.initPosition(static_cast<uint32_t>(bytes_.byte() % kListMax));
        last_cut_.clear();
        for (uint32_t i = 0; i < position.size(); ++i) {
          last_cut_.push_back(bytes_.count());
          position.set(i, last_cut_.back());
        }
        return send(request);
      }
      case 2:
        return send(checkpoint->releaseHoldRequest());
      case 3: {
        auto request = checkpoint->saveRequest();
        request.setFolder(bytes_.folder());
        if (bytes_.byte() == 1) last_cut_.push_back(bytes_.count());
        auto position = request.initPosition(static_cast<uint32_t>(last_cut_.size()));
        for (uint32_t i = 0; i < position.size(); ++i) position.set(i, last_cut_[i]);
        return send(request, "save");
      }
      case 4: {
        auto request = checkpoint->restoreRequest();
        request.setFolder(bytes_.folder());
        return send(request, "restore");
      }
      default:
        return send(checkpoint->commitRestoreRequest(), "commitRestore");
    }
  }
}

void Session::dataCall(uint8_t method) {
  KJ_IF_MAYBE (data, client().data) {
    if (method % 4 == 0) {
      auto request = data->initialiseRequest();
      fillArena([&](uint32_t chunks) { return request.initValues(chunks); });
      return send(request);
    }
    if (method % 4 == 1) {
      auto request = data->pullRequest();
      const uint8_t wants = bytes_.byte();
      request.setWantsStep(wants % 2 == 1);
      if (wants % 2 == 1) request.setWantedStep(bytes_.count());
      return send(request);
    }
    if (method % 8 == 7) return send(data->averagesRequest(), "averages");
    auto request = data->exchangeRequest();
    request.setStep(bytes_.count());
    request.setBatch(static_cast<uint32_t>(bytes_.count()));
    request.setLoss(bytes_.number<float>());
    fillArena([&](uint32_t chunks) { return request.initGradient(chunks); });
    return send(request);
  }
}

void Session::leaderCall(uint8_t method) {
  KJ_IF_MAYBE (leader, client().leader) {
    if (method % 3 == 0) {
      auto request = leader->followRequest();
      fillTask(request.initTask());
      request.setFollower(kj::heap<Follower>());
      return send(request);
    }
    auto request = leader->receivedRequest();
    auto task = request.initTask();
    task.setJob(schema::JobKind::PS);
    task.setIndex(static_cast<uint32_t>(method % 3 == 1 ? 1 : bytes_.count()));
    request.setStep(bytes_.count());
    request.setRank(static_cast<uint32_t>(bytes_.count()));
    return send(request);
  }
}

// What ps/0 has decided, as ps/1 hears it.
void Session::followerCall() {
  KJ_IF_MAYBE (follower, loop_.follower()) {
    auto request = follower->decidedRequest();
    request.setStep(bytes_.count());
    auto ranks = request.initRanks(bytes_.byte() % 4);
    for (uint32_t i = 0; i < ranks.size(); ++i) ranks.set(i, static_cast<uint32_t>(bytes_.count()));
    return send(request, "decided");
  }
}

void Session::workerCall() {
  if (bytes_.byte() % 4 == 3) {
    worker_connection_ = nullptr;
    return;
  }
  if (worker_connection_ == nullptr) {
    net::AsioEventPort::Io io(reactor_.port);
    auto [near, far] = fuzz::pipeStreams();
    worker_.serve(kj::mv(far), "fuzz",
                  [this](const daemons::ConnectionRef&) -> capnp::Capability::Client {
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
  static const bool quiet = (dtf::log::init("fuzz", dtf::log::Level::kError), true);
  (void)quiet;
  dtf::fuzz::Bytes bytes(data, size);
  const uint8_t kind = bytes.byte();
  Session(bytes, kind).run();
  return 0;
}
