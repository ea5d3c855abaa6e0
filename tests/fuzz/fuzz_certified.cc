// A psd with keys, and a worker of the job whose connection is taken over after the handshake. Its
// certificate is worker/1's, its bytes are arbitrary: broken frames, the bare RPC protocol, and
// every hello. It must act as worker/1 at most: it takes no other worker's place, does not pass for
// a ps, and reaches no checkpoint.

#include <stdlib.h>
#include <sys/socket.h>

#include <array>
#include <filesystem>
#include <memory>
#include <vector>

#include "common/base/file.h"
#include "common/base/log.h"
#include "common/host/ps_server.h"
#include "common/net/key_folder.h"
#include "common/net/message_stream.h"
#include "common/net/tls_keys.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/no_traces.h"
#include "tests/fuzz/program.h"
#include "tests/fuzz/raw_peer.h"
#include "tests/fuzz/reached.h"
#include "tests/fuzz/rpc_messages.h"
#include "tests/fuzz/rpc_world.h"

namespace {

using namespace dtf;
using fuzz::Arguments;

const fuzz::MustReach kMustReach{"worker/1", "no worker/0", "no ps", "no chief", "bytes", "raw"};

constexpr size_t kCallsMax = 60;
constexpr uint64_t kHonest = 77;  // of worker/0's process

// Keys of a job of this process's own.
struct Keys {
  std::filesystem::path folder;
  std::unique_ptr<net::TlsKeys> ps, chief, other;

  Keys() {
    std::string pattern = (std::filesystem::temp_directory_path() / "dtf-fuzz-XXXXXX").string();
    FUZZ_CHECK(::mkdtemp(pattern.data()) != nullptr);
    folder = pattern;
    net::KeyFolder keys = net::KeyFolder::create(folder, fuzz::kJob, {});
    for (const char* task : {"ps/0", "worker/0", "worker/1"}) keys.issue(task, "", {});
    ps = std::make_unique<net::TlsKeys>(folder, "ps/0");
    chief = std::make_unique<net::TlsKeys>(folder, "worker/0");
    other = std::make_unique<net::TlsKeys>(folder, "worker/1");
  }
  ~Keys() {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
};

// State that all inputs share.
struct World {
  net::Reactor reactor;
  fuzz::PreparedDisk disk;
  std::shared_ptr<net::BufferPool> pool = net::BufferPool::create();
};

// Both ends of a connection on which the handshake is done.
struct Secured {
  net::AcceptedSocket near, far;  // the client's, the server's
};

Secured secured(net::TlsKeys& client, net::TlsKeys& server) {
  int ends[2];
  FUZZ_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
  Secured both{{Fd(ends[0]), client.connect(ends[0], server.task())},
               {Fd(ends[1]), server.accept(ends[1])}};
  using Io = net::TlsSession::Io;
  Io near = Io::kWantRead, far = Io::kWantRead;
  for (int turn = 0; turn < 16 && (near != Io::kDone || far != Io::kDone); ++turn) {
    if (near != Io::kDone) near = both.near.tls->handshake();
    if (far != Io::kDone) far = both.far.tls->handshake();
  }
  FUZZ_CHECK(near == Io::kDone && far == Io::kDone);
  FUZZ_CHECK(both.far.tls->peer() == client.task());
  return both;
}

class Follower final : public schema::SyncFollower::Server {
  kj::Promise<void> decided(DecidedContext) override { return kj::READY_NOW; }
};

class Session {
 public:
  Session(World& world, Keys& keys)
      : world_(world),
        keys_(keys),
        task_(fuzz::taskOptions(0, cluster::Durability::kCheckpoint)),
        loop_(world.reactor, true),
        server_(std::make_unique<host::PsServer>(task_, loop_, loop_, loop_, world.disk.fresh(),
                                                 checkpoint::SnapshotPlace{})) {
    server_->startData(std::make_unique<optimizer::InlineUpdateRunner>());
    server_->start([] {}, [this] { ended_ = true; });
    chief_ = connect(*keys_.chief, false);
    joinChief();
  }

  void run(const fuzz::Program& program) {
    for (size_t i = 0; i < std::min(kCallsMax, program.calls.size()) && !ended_; ++i) {
      arguments_ = Arguments(program.calls[i]);
      // An exception here comes from this side: a message that can't be built.
      const auto refused = kj::runCatchingExceptions([this] { operation(); });
      (void)refused;
      loop_.settle();
      check();
    }
    close();
  }

 private:
  // worker/0 has only joined, and no other peer can be worker/0.
  void check() {
    const auto& members = server_->host().shard().status().members;
    FUZZ_CHECK(members.at(0).incarnation == Incarnation{kHonest});
    FUZZ_CHECK(members.at(0).state == replication::MemberState::kJoined);
    if (members.at(1).state == replication::MemberState::kJoined) ++fuzz::reached()["worker/1"];
  }

  void joinChief() {
    auto request = chief_->bootstrap().castAs<schema::PsGate>().helloRequest();
    fuzz::fillHello(arguments_, 0, false, cluster::Durability::kCheckpoint, request.initHello());
    request.getHello().setIncarnation(kHonest);
    bool joined = false;
    auto sent = request.send().then([&joined](auto&&) { joined = true; }).eagerlyEvaluate(nullptr);
    for (int turn = 0; turn < 4; ++turn) loop_.settle();
    FUZZ_CHECK(joined);
  }

  net::Transport adopt(net::AcceptedSocket socket) {
    return net::adoptTransport(world_.reactor.ioc, std::move(socket));
  }

  void serve(net::AcceptedSocket far, bool bulk) {
    auto stream = kj::heap<net::AsioMessageStream>(world_.reactor.port, adopt(std::move(far)),
                                                   net::kLimitsBeforeHello, world_.pool);
    bulk ? server_->serveBulk(kj::mv(stream), "fuzz")
         : server_->serveControl(kj::mv(stream), "fuzz");
  }

  kj::Own<net::MessageStream> stream(net::TlsKeys& keys, bool bulk) {
    Secured both = secured(keys, *keys_.ps);
    serve(std::move(both.far), bulk);
    return kj::heap<net::AsioMessageStream>(world_.reactor.port, adopt(std::move(both.near)),
                                            net::Limits{}, world_.pool);
  }

  std::unique_ptr<net::RpcConnection> connect(net::TlsKeys& keys, bool bulk) {
    return std::make_unique<net::RpcConnection>(stream(keys, bulk), net::RpcOptions{"psd"});
  }

  void operation() {
    const uint8_t kind = arguments_.byte();
    const bool bulk = kind >= 128;
    switch (kind % 6) {
      case 0:
        return hello(bulk);
      case 1:
        return peer();
      case 2:
        return replica();
      case 3:
        return supervise();
      case 4:
        return bytes(bulk);
      default: {
        std::unique_ptr<fuzz::RawPeer>& raw = raw_[bulk ? 1 : 0];
        if (raw == nullptr) raw = std::make_unique<fuzz::RawPeer>(stream(*keys_.other, bulk), 0);
        raw->send(arguments_);
        ++fuzz::reached()["raw"];
      }
    }
  }

  net::RpcConnection& connection(bool bulk) {
    std::unique_ptr<net::RpcConnection>& one = connections_[bulk ? 1 : 0];
    if (one == nullptr) one = connect(*keys_.other, bulk);
    return *one;
  }

  // Sends a hello with the identity in the bytes. An accepted caller is worker/1.
  void hello(bool bulk) {
    const auto judge = [](uint32_t caller, bool is_worker, auto&& answered) {
      return answered.then([caller, is_worker](auto&&) { FUZZ_CHECK(is_worker && caller == 1); },
                           [caller, is_worker](kj::Exception&&) {
                             if (is_worker && caller == 0) ++fuzz::reached()["no worker/0"];
                           });
    };
    if (bulk) {
      auto request = connection(true).bootstrap().castAs<schema::PsDataGate>().helloRequest();
      fuzz::fillHello(arguments_, 0, false, cluster::Durability::kCheckpoint, request.initHello());
      const auto caller = request.getHello().getCaller().asReader();
      const uint32_t index = caller.getIndex();
      const bool worker = caller.getJob() == schema::JobKind::WORKER;
      return keep(judge(index, worker, request.send()));
    }
    auto request = connection(false).bootstrap().castAs<schema::PsGate>().helloRequest();
    fuzz::fillHello(arguments_, 0, false, cluster::Durability::kCheckpoint, request.initHello());
    const auto caller = request.getHello().getCaller().asReader();
    const uint32_t index = caller.getIndex();
    const bool worker = caller.getJob() == schema::JobKind::WORKER;
    auto sent = request.send();
    control_ = sent.getControl();
    keep(judge(index, worker, kj::mv(sent)));
  }

  // Calls that only another ps may make: for sync's agreement, or for a replica.
  void peer() {
    auto request = connection(false).bootstrap().castAs<schema::PsGate>().peerRequest();
    fuzz::fillHello(arguments_, 0, true, cluster::Durability::kCheckpoint, request.initHello());
    request.setFollower(kj::heap<Follower>());
    keepRefused(request.send(), "no ps");
  }
  void replica() {
    auto request = connection(true).bootstrap().castAs<schema::PsDataGate>().replicaRequest();
    fuzz::fillHello(arguments_, 0, true, cluster::Durability::kCheckpoint, request.initHello());
    keepRefused(request.send(), "no ps");
  }
  void supervise() {
    KJ_IF_MAYBE (control, control_) keepRefused(control->superviseRequest().send(), "no chief");
  }

  // Raw bytes without frames, as records of a valid session.
  void bytes(bool bulk) {
    if (!loose_.tls) {
      Secured both = secured(*keys_.other, *keys_.ps);
      serve(std::move(both.far), bulk);
      loose_ = std::move(both.near);
    }
    const std::string_view all = arguments_.rest();
    size_t put = 0;
    if (!all.empty()) loose_.tls->write(all.data(), all.size(), put);
    loose_.tls->flush();
    ++fuzz::reached()["bytes"];
  }

  template <class Sent>
  void keepRefused(Sent&& sent, const char* reaches) {
    keep(sent.then([](auto&&) { FUZZ_CHECK(!"it was let in"); },
                   [reaches](kj::Exception&&) { ++fuzz::reached()[reaches]; }));
  }
  void keep(kj::Promise<void> call) {
    calls_.push_back(call.eagerlyEvaluate([](kj::Exception&&) {}));
  }

  // Leaves the world as it was found.
  void close() {
    calls_.clear();
    control_ = nullptr;
    connections_ = {};
    raw_ = {};
    loose_ = {};
    chief_ = nullptr;
    loop_.settle();
    loop_.close();
    loop_.settle();
    server_->stopData();
    loop_.settle();
    server_ = nullptr;
    loop_.settle();
    FUZZ_CHECK(loop_.time().idle());
  }

  World& world_;
  Keys& keys_;
  Arguments arguments_{{}};
  const cluster::TaskOptions task_;
  fuzz::PeerLoop loop_;
  std::unique_ptr<host::PsServer> server_;
  bool ended_ = false;  // the ps has nothing more to do
  std::unique_ptr<net::RpcConnection> chief_;
  std::array<std::unique_ptr<net::RpcConnection>, 2> connections_;  // control, bulk
  std::array<std::unique_ptr<fuzz::RawPeer>, 2> raw_;               // likewise
  net::AcceptedSocket loose_;                                       // sends raw bytes
  kj::Maybe<schema::PsControl::Client> control_;
  std::vector<kj::Promise<void>> calls_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Keys keys;
  static World& world = *[] {
    dtf::log::init("fuzz", dtf::log::Level::kError);
    return new World;  // never destroyed: kj's loop must end on the thread that made it
  }();
  const dtf::fuzz::NoTraces no_traces;
  Session(world, keys).run(dtf::fuzz::parseProgram(data, size));
  return 0;
}
