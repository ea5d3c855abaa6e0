#include "tests/fuzz/rpc_world.h"

#include <vector>

#include "common/checkpoint/checkpoint_folder.h"
#include "common/net/connector.h"
#include "common/optimizer/optimizer.h"
#include "common/replication/epoch.h"
#include "tests/fuzz/fuzz.h"

namespace dtf::fuzz {

namespace {

using Kind = cluster::OptimizerSpec::Kind;

class Leader final : public schema::SyncLeader::Server {
  kj::Promise<void> received(ReceivedContext) override { return kj::READY_NOW; }
};

class LeaderGate final : public schema::PsGate::Server {
 public:
  explicit LeaderGate(kj::Maybe<schema::SyncFollower::Client>& follower) : follower_(follower) {}

 private:
  kj::Promise<void> peer(PeerContext context) override {
    follower_ = context.getParams().getFollower();
    context.getResults().setLeader(kj::heap<Leader>());
    return kj::READY_NOW;
  }

  kj::Maybe<schema::SyncFollower::Client>& follower_;
};

// Accepts everything, and returns untrained values.
class Keeper final : public schema::PsReplica::Server {
  kj::Promise<void> arena(ArenaContext) override { return kj::READY_NOW; }
  kj::Promise<void> seed(SeedContext) override { return kj::READY_NOW; }
  kj::Promise<void> update(UpdateContext) override { return kj::READY_NOW; }
  kj::Promise<void> fetch(FetchContext context) override {
    auto state = context.getResults().initState();
    state.setEpoch(replication::kFirstEpoch);
    state.setOrigin(1);
    state.setBeta1Power(1);
    state.setBeta2Power(1);
    state.initWorkers(kWorkers);
    context.getResults().setArenas(1);
    return kj::READY_NOW;
  }
  kj::Promise<void> fetched(FetchedContext context) override {
    context.getResults().initValues(1).init(0, kElements * sizeof(float));
    return kj::READY_NOW;
  }
};

class KeeperGate final : public schema::PsDataGate::Server {
  kj::Promise<void> replica(ReplicaContext context) override {
    context.getResults().setIncarnation(1);
    context.getResults().setReplica(kj::heap<Keeper>());
    return kj::READY_NOW;
  }
};

// Slots of the optimizers in the fuzzed models.
std::vector<std::string> slotNames() {
  std::vector<std::string> names;
  for (const Kind kind : {Kind::kGradientDescent, Kind::kAdagrad, Kind::kAdam}) {
    cluster::OptimizerSpec optimizer;
    optimizer.kind = kind;
    for (uint32_t i = 0; i < optimizer::slotCount(optimizer); ++i)
      names.push_back(optimizer::slotName(optimizer, i));
  }
  return names;
}

}  // namespace

cluster::DurabilitySpec durabilityOf(cluster::Durability kind) {
  cluster::DurabilitySpec durability;
  durability.kind = kind;
  if (kind == cluster::Durability::kSnapshot) durability.snapshot_every_steps = 4;
  return durability;
}

cluster::Durability durabilityIn(uint8_t world) {
  if (world >= 16 && world < 40) return cluster::Durability::kSnapshot;
  if (world >= 40 && world < 60) return cluster::Durability::kReplica;
  return cluster::Durability::kCheckpoint;
}

cluster::TaskOptions taskOptions(uint32_t ps_task, cluster::Durability durability) {
  cluster::TaskOptions options;
  options.task = {JobKind::kPs, ps_task};
  options.job.job = kJob;
  options.job.run_dir = kRunDir;
  options.job.cluster.ps.resize(2);
  for (cluster::TaskSpec& task : options.job.cluster.ps) task.address = {"127.0.0.1", 1};
  options.job.cluster.worker.resize(kWorkers);
  options.job.durability = durabilityOf(durability);
  return options;
}

void prepareDisk(FileSystem& disk) {
  const std::filesystem::path root = std::filesystem::path(kRunDir) / "checkpoints";
  disk.makeFolder(kRunDir);
  checkpoint::CheckpointFolder folder(disk, root, Incarnation{1});
  folder.prepare();
  const Shape shape{static_cast<int64_t>(kElements)};
  const std::vector<float> values(kElements, 0.5F);
  checkpoint::Manifest manifest;
  manifest.job = "fuzz";
  manifest.global_step = 5;
  manifest.worker_batches.assign(kWorkers, 3);
  manifest.clocks.push_back({5, 0.5, 0.5});
  manifest.variables.push_back({"v", shape, slotNames()});
  std::vector<checkpoint::TensorPart> parts = {{"v", shape, 0, kElements, values.data()}};
  for (const std::string& slot : manifest.variables[0].slots)
    parts.push_back({"v/" + slot, shape, 0, kElements, values.data()});
  const std::string attempt = folder.beginAttempt(manifest.global_step);
  manifest.shards.push_back(checkpoint::writeShard(disk, root / attempt, 0, 1, parts));
  FUZZ_CHECK(folder.commit(manifest) == checkpoint::CommitOutcome::kCommitted);
  FUZZ_CHECK(disk.exists(root / kSaved));
  disk.makeFolder(root / kAttempt);
}

testing::SimulatedDisk& PreparedDisk::fresh() {
  if (disk_ == nullptr || disk_->operations().size() != operations_) {
    disk_ = std::make_unique<testing::SimulatedDisk>();
    prepareDisk(*disk_);
    operations_ = disk_->operations().size();
  }
  return *disk_;
}

StreamPair socketStreams(net::Reactor& reactor, const net::Limits& limits,
                         std::shared_ptr<net::BufferPool> pool) {
  static const std::shared_ptr<net::BufferPool> shared = net::BufferPool::create();
  if (pool == nullptr) pool = shared;
  net::asio::local::stream_protocol::socket near(reactor.ioc);
  net::asio::local::stream_protocol::socket far(reactor.ioc);
  net::asio::local::connect_pair(near, far);
  return {
      kj::heap<net::AsioMessageStream>(reactor.port, net::Socket(std::move(near)), limits, shared),
      kj::heap<net::AsioMessageStream>(reactor.port, net::Socket(std::move(far)),
                                       net::kLimitsBeforeHello, pool)};
}

PeerLoop::~PeerLoop() noexcept = default;

kj::Promise<kj::Own<net::MessageStream>> PeerLoop::connect(std::string, uint16_t,
                                                           net::ConnectOptions options,
                                                           const net::Limits&,
                                                           std::shared_ptr<net::BufferPool>) {
  if (served_ == nullptr)
    served_ = std::make_unique<wire::ConnectionSet>(*this, [](const void*) {});
  StreamPair streams = memoryStreams();
  served_->serve(
      kj::mv(streams.far), "psd",
      [this, kind = options.kind](const wire::ConnectionRef&) -> capnp::Capability::Client {
        if (kind == net::ConnectionKind::kBulk)
          return schema::PsDataGate::Client(kj::heap<KeeperGate>());
        return schema::PsGate::Client(kj::heap<LeaderGate>(follower_));
      });
  return kj::mv(streams.near);
}

void PeerLoop::close() {
  follower_ = nullptr;
  served_ = nullptr;
}

}  // namespace dtf::fuzz
