#include "tests/sim/sim_ps.h"

#include <fmt/format.h>

#include "common/base/check.h"
#include "common/host/checkpoint_service.h"
#include "tests/sim/sim_supervisor.h"

namespace dtf::sim {

namespace {

// Runs an update a while later, in two parts.
class SlowRunner final : public optimizer::UpdateRunner {
 public:
  SlowRunner(const Environment& environment, ProcessRef process, bool runs_all,
             std::function<void()> on_update)
      : environment_(environment),
        process_(std::move(process)),
        runs_all_(runs_all),
        on_update_(std::move(on_update)) {}
  ~SlowRunner() override {
    for (const uint64_t id : events_) environment_.scheduler.cancel(id);
  }
  uint64_t inPlaceBytesMax() const override {
    return runs_all_ ? 0 : UpdateRunner::inPlaceBytesMax();
  }
  void start(std::shared_ptr<optimizer::UpdateJob> job, std::function<void()> done) override {
    on_update_();
    const Duration delay(static_cast<int64_t>(environment_.random.below(5'000'000)));
    events_.push_back(environment_.scheduler.after(delay, process_, [job, done = std::move(done)] {
      const uint64_t middle = job->elements() / 2;
      job->run(middle, job->elements());
      job->run(0, middle);
      done();
    }));
  }

 private:
  const Environment environment_;
  const ProcessRef process_;
  const bool runs_all_;  // else small arenas are updated in place
  const std::function<void()> on_update_;
  std::vector<uint64_t> events_;
};

// A disk that shares the memory of a ps's host, but not the chief's run directory.
class DiskElsewhere final : public FileSystem {
 public:
  explicit DiskElsewhere(FileSystem& disk) : disk_(disk) {}
  std::unique_ptr<WritableFile> create(const Path& file) override { return at(file).create(file); }
  std::unique_ptr<ReadableFile> open(const Path& file) override { return at(file).open(file); }
  std::vector<FolderEntry> list(const Path& folder) override { return at(folder).list(folder); }
  bool exists(const Path& path) override { return at(path).exists(path); }
  void makeFolder(const Path& folder) override { at(folder).makeFolder(folder); }
  void rename(const Path& from, const Path& to) override { at(from).rename(from, to); }
  void removeFile(const Path& file) override { at(file).removeFile(file); }
  void removeFolder(const Path& folder) override { at(folder).removeFolder(folder); }
  void syncFolder(const Path& folder) override { at(folder).syncFolder(folder); }

 private:
  FileSystem& at(const Path& path) {
    DTF_CHECK_MSG(!path.string().starts_with(kRunDir), "a ps wants a file of the chief's");
    return disk_;
  }
  FileSystem& disk_;
};

}  // namespace

cluster::JobSpec jobOf(const Plan& plan) {
  cluster::JobSpec job;
  job.job = "sim";
  job.run_dir = kRunDir;
  job.timeouts = plan.timeouts;
  if (plan.snapshot_every_steps > 0)
    job.durability = {cluster::Durability::kSnapshot, plan.snapshot_every_steps};
  for (uint32_t i = 0; i < plan.ps_tasks; ++i)
    job.cluster.ps.emplace_back().address = {fmt::format("ps{}", i), 1};
  job.cluster.worker.resize(plan.workers);
  job.cluster.hybrid = plan.isHybrid();
  for (uint32_t i = 0; i < plan.workers && plan.workers_host; ++i)
    job.cluster.worker[i].address = {fmt::format("worker{}", i), 1};
  if (plan.replicas) job.durability.kind = cluster::Durability::kReplica;
  return job;
}

SimPs::SimPs(const Environment& environment, const Plan& plan, uint32_t index, uint32_t attempt,
             std::vector<uint32_t> finished_workers, std::function<void(SimPs&)> on_ended,
             std::function<void()> on_update)
    : environment_(environment),
      index_(index),
      process_(std::make_shared<Process>(fmt::format("ps/{}", index))),
      control_(environment, process_),
      data_(environment, process_),
      own_disk_(plan.gather ? std::make_unique<DiskElsewhere>(environment.disk) : nullptr) {
  cluster::TaskOptions task;
  task.task = {JobKind::kPs, index};  // also of a worker, as in HostedShard
  task.job = jobOf(plan);
  task.attempt = plan.launched ? attempt : 0;
  task.finished_workers = std::move(finished_workers);
  const std::string address = task.job.cluster.hosts()[index].address.str();
  checkpoint::SnapshotPlace memory;
  if (plan.snapshot_every_steps > 0) memory.folder = kHostMemory;
  FileSystem& disk = own_disk_ ? *own_disk_ : environment.disk;
  server_ = std::make_unique<host::PsServer>(task, control_, data_, data_, disk, memory);
  server_->startData(
      std::make_unique<SlowRunner>(environment, process_, plan.slow_updates, std::move(on_update)));
  // The port of a worker stays open for as long as its process lives.
  const bool is_worker = plan.host(index).job == JobKind::kWorker;
  server_->start(
      [this, address, is_worker] {
        if (!is_worker) environment_.network.close(address);
      },
      [this, on_ended = std::move(on_ended)] {
        if (ended_) return;
        ended_ = true;
        // Mirrors PsProcess.
        const host::CheckpointOptions& kept = server_->options().checkpoint;
        if (server_->endedWell()) host::forgetSnapshots(kept);
        environment_.scheduler.after({}, process_, [this, on_ended] { on_ended(*this); });
      });
  environment.network.listen(
      address, process_,
      [this](Network::Stream stream, net::ConnectionKind kind, const std::string& peer) {
        onConnection(kj::mv(stream), kind, peer);
      });
}

SimPs::~SimPs() noexcept(false) {
  server_->stopData();
  server_ = nullptr;
}

std::optional<Error> SimPs::error() const {
  try {
    if (server_->result() != 0)
      return Error(ErrorCode::kUnavailable, process_->name + " was ended by a signal");
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

int SimPs::exitCode() const {
  try {
    return server_->result();
  } catch (const Error& error) {
    return dtf::exitCode(error.code());
  }
}

void SimPs::onConnection(Network::Stream stream, net::ConnectionKind kind,
                         const std::string& peer) {
  if (kind == net::ConnectionKind::kControl)
    return server_->serveControl(net::wrapStream(kj::mv(stream)), peer);
  auto held = std::make_shared<Network::Stream>(kj::mv(stream));
  data_.post([this, held, peer] { server_->serveBulk(net::wrapStream(kj::mv(*held)), peer); });
}

}  // namespace dtf::sim
