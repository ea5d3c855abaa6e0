// `dtf-bench refill`: a ps of `durability: replica` is killed, another process takes its place, its
// shard comes back from the ps that keeps the replica, and it gets the replica of the other's
// shard: only then does the next update count. Real psd processes; this process is the chief.
// Beside it, in turns: the same bytes, twice a shard, over one raw socket into memory that is as
// new.

#include <fmt/core.h>
#include <signal.h>

#include <array>
#include <memory>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/replication/epoch.h"
#include "common/wire/checkpoint/rpc_checkpoint_client.h"
#include "tests/bench/benchmarks.h"
#include "tests/bench/child.h"
#include "tests/bench/raw_peer.h"
#include "tests/support/process.h"

namespace dtf::bench {

namespace {

constexpr uint32_t kPsTasks = 2;
constexpr uint32_t kLost = 1;
constexpr std::chrono::seconds kReturnDeadline{60};
constexpr double kRefillGoal = 0.8;  // of the raw socket

arena::ModelDeclaration declarationOf(uint64_t elements) {
  std::vector<arena::VariableParts> variables;
  for (uint32_t task = 0; task < kPsTasks; ++task)
    variables.push_back({fmt::format("variable{}", task),
                         Shape{static_cast<int64_t>(elements)},
                         {{task, 0, elements}}});
  arena::ModelDeclaration declaration;
  declaration.layout = arena::makeLayout(variables, kPsTasks);
  declaration.optimizer = cluster::defaultOptimizer(cluster::OptimizerSpec::Kind::kGradientDescent);
  declaration.replication = {cluster::ReplicationSpec::Mode::kAsync, 1, 1};
  declaration.steps = uint64_t{1} << 40;
  return declaration;
}

// Two ps and their chief, which trains nothing.
class ReplicatedJob {
 public:
  explicit ReplicatedJob(uint64_t elements) {
    job_.job = "refill";
    job_.durability.kind = cluster::Durability::kReplica;
    std::string ps;
    for (uint32_t task = 0; task < kPsTasks; ++task) {
      const uint16_t port = sockets_.at(task).port;
      job_.cluster.ps.emplace_back().address = {"127.0.0.1", port};
      ps += fmt::format("{}\"127.0.0.1:{}\"", task == 0 ? "" : ", ", port);
    }
    // Nobody listens there, but a ps compares its list of the workers with the chief's.
    job_.cluster.worker.emplace_back().address = {"127.0.0.1", 1};
    cluster_file_ = folder_.write(
        "cluster.yaml",
        fmt::format("job: {}\nrun_dir: {}\ndurability: replica\ncluster:\n  ps: [{}]\n  worker: "
                    "[\"127.0.0.1:1\"]\n",
                    job_.job, folder_.path(), ps));
    for (uint32_t task = 0; task < kPsTasks; ++task) ps_.push_back(startPs(task));
    begin(elements);
  }

  // Seconds.
  struct Times {
    double moved = 0;  // from the return of the ps, until both shards are on two ps again
    double whole = 0;  // likewise, from its kill
  };

  Times loseAndRefill() {
    const TimePoint killed = clock_.now();
    ps_.at(kLost)->signal(SIGKILL);
    ps_[kLost]->wait(std::chrono::seconds(10));
    ps_[kLost] = startPs(kLost);
    awaitReturn();
    const TimePoint returned = clock_.now();
    checkpoints_->held();  // opens the session with the new process
    checkpoints_->refill({kLost}, replication::kFirstEpoch);
    checkpoints_->awaitReplicas(replication::kFirstEpoch);
    const TimePoint end = clock_.now();
    return {toSeconds(end - returned), toSeconds(end - killed)};
  }

 private:
  std::unique_ptr<testing::Process> startPs(uint32_t task) {
    return bench::startTask("daemons/psd/psd", cluster_file_, task, sockets_.at(task));
  }

  void begin(uint64_t elements) {
    wire::RpcClientOptions options;
    options.link = wire::linkOptions(job_, kChief, Incarnation::ofNow());
    options.ps = wire::addressesOf(job_.cluster.ps);
    options.on_replaced = [this](uint32_t) {
      const MutexLock lock(mutex_);
      ++returns_;
      returned_.notifyAll();
    };
    client_ = std::make_unique<wire::RpcExchangeClient>(std::move(options));
    client_->declare(declarationOf(elements));
    const std::vector<float> values(elements, 1.0F);
    const std::vector<std::span<const float>> shards(kPsTasks, values);
    client_->initialise(shards, replication::kFirstEpoch);
    client_->waitInitialised();
    checkpoints_ = std::make_unique<wire::RpcCheckpointClient>(*client_, 60);
    checkpoints_->held();
    checkpoints_->awaitReplicas(replication::kFirstEpoch);
  }

  void awaitReturn() {
    const MutexLock lock(mutex_);
    const uint64_t wanted = ++losses_;
    const TimePoint deadline = clock_.now() + kReturnDeadline;
    while (returns_ < wanted)
      if (!returned_.waitUntil(mutex_, deadline))
        throw Error(
            ErrorCode::kDeadline,
            "the ps that was started again was not heard of; it said:\n" + ps_[kLost]->err());
  }

  const SystemClock clock_;
  const testing::TemporaryFolder folder_;
  cluster::JobSpec job_;
  std::string cluster_file_;
  const std::array<ListeningSocket, kPsTasks> sockets_;
  std::vector<std::unique_ptr<testing::Process>> ps_;
  Mutex mutex_;
  CondVar returned_;
  uint64_t returns_ DTF_GUARDED_BY(mutex_) = 0;
  uint64_t losses_ = 0;
  std::unique_ptr<wire::RpcExchangeClient> client_;
  std::unique_ptr<wire::RpcCheckpointClient> checkpoints_;
};

double pullRaw(RawClient& raw, uint64_t bytes) {
  const SystemClock clock;
  double seconds = 0;
  for (int shard = 0; shard < 2; ++shard) {
    raw.renewBuffer(bytes);
    const TimePoint begin = clock.now();
    raw.pull(bytes);
    seconds += toSeconds(clock.now() - begin);
  }
  return seconds;
}

}  // namespace

std::vector<Report> benchRefill(const BenchOptions& options) {
  Report report("a lost shard, back from its replica, ms (medians)",
                {"moved", "raw", "ratio", "goal", "GB/s", "kill to whole"});
  log::init("", log::Level::kError);  // that a ps is lost is no news here
  const std::vector<uint64_t> sizes =
      options.quick ? std::vector<uint64_t>{1} : std::vector<uint64_t>{64, 256, 1024};
  for (const uint64_t mib : sizes) {
    const uint64_t bytes = mib << 20;
    ListeningSocket socket;
    const Child server([&] { serveRaw(socket.fd, bytes); }, Child::Cpu::kAny);
    RawClient raw_client(socket.port, bytes);
    ReplicatedJob job(bytes / sizeof(float));
    std::vector<double> moved, raw, ratio, whole;
    for (int i = 0; i < options.repetitions; ++i) {
      raw.push_back(pullRaw(raw_client, bytes) * 1e3);
      const ReplicatedJob::Times times = job.loseAndRefill();
      moved.push_back(times.moved * 1e3);
      whole.push_back(times.whole * 1e3);
      ratio.push_back(raw.back() / moved.back());
    }
    report.add(fmt::format("{} MiB", mib),
               {median(moved), median(raw), median(ratio), kRefillGoal,
                static_cast<double>(2 * bytes) / median(moved) * 1e-6, median(whole)});
  }
  return {report};
}

}  // namespace dtf::bench
