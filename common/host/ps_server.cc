#include "common/host/ps_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "common/base/check.h"
#include "common/base/host_memory.h"
#include "common/base/log.h"
#include "common/base/notify.h"
#include "common/base/paused.h"
#include "common/net/damage.h"
#include "common/net/timer.h"

namespace dtf::host {

namespace {

constexpr Duration kWatchEvery = std::chrono::milliseconds(50);
// Several periods of the watch, so that the clock of a loop that is merely busy doesn't pause.
constexpr Duration kReadClockEvery = 10 * kWatchEvery;
constexpr Duration kReportEvery = std::chrono::seconds(3);
// Time for a worker to connect again after its connection has closed. It is enough for several
// attempts, and shorter than a lease: the others wait that long for a worker that is gone.
constexpr Duration kReturnMax = std::chrono::seconds(1);
// Time for workers that start just after another one has ended the job. They receive its error here
// instead of waiting for a ps in vain.
constexpr Duration kLateWorkers = std::chrono::seconds(5);

ServiceOptions serviceOptions(const cluster::TaskOptions& task, FileSystem& file_system,
                              checkpoint::SnapshotPlace snapshots) {
  const cluster::ClusterSpec& cluster = task.job.cluster;
  const auto workers = static_cast<uint32_t>(cluster.worker.size());
  ServiceOptions options{task.job.job,
                         task.task,
                         workers,
                         wire::addressesOf(cluster.worker),
                         cluster.shardHosts().size(),
                         task.job.timeouts,
                         {task.job.run_dir / "checkpoints", task.task.index, workers, &file_system,
                          task.job.job, std::move(snapshots), cluster.shardHosts()},
                         task.job.durability,
                         cluster.shared_memory,
                         cluster.shardHosts()};
  options.remote = wire::remoteDomainOf(task.job);
  return options;
}

wire::LinkOptions selfOf(const cluster::TaskOptions& task, uint64_t chunk_bytes) {
  wire::LinkOptions self = wire::linkOptions(task.job, task.task, Incarnation::ofNow(task.attempt));
  self.chunk_bytes = chunk_bytes;
  return self;
}

shard::ShardOptions shardOptions(const ServiceOptions& options,
                                 const std::vector<uint32_t>& finished_workers) {
  shard::ShardOptions shard;
  shard.ps_task = options.self.index;
  shard.ps_tasks = options.ps_tasks;
  shard.hosts = options.hosts;
  shard.workers = options.workers;
  shard.lease = fromSeconds(options.timeouts.lease_seconds);
  shard.step_timeout = fromSeconds(options.timeouts.step_seconds);
  shard.rejoin_timeout = fromSeconds(options.timeouts.rejoin_seconds);
  shard.finished_workers = finished_workers;
  shard.evaluation_max = fromSeconds(options.timeouts.finish_seconds);
  static const uint64_t memory_bytes = hostMemory().total;  // a fuzzer makes thousands of shards
  shard.memory_bytes = memory_bytes;
  return shard;
}

}  // namespace

PsServer::PsServer(const cluster::TaskOptions& task, net::Loop& control, net::Loop& data,
                   net::Loop& disk, FileSystem& file_system, checkpoint::SnapshotPlace snapshots,
                   uint64_t chunk_bytes)
    : task_(task),
      options_(serviceOptions(task, file_system, std::move(snapshots))),
      control_(control),
      clock_(control.clock(), kReadClockEvery),
      started_(clock_.now()),
      peers_(control_, selfOf(task, chunk_bytes), wire::addressesOf(task.job.cluster.hosts()),
             [this](const Error& error) {
               if (!ending_) end(error, 0);
             }),
      bulk_pool_(net::BufferPool::create()),
      host_(control_, data, disk),
      connections_(control_, [this](const void* key) { onClosed(key); }),
      reported_(started_),
      complete_since_(started_) {
  DTF_CHECK(options_.self.job == JobKind::kPs && options_.self.index < options_.ps_tasks);
  DTF_CHECK(options_.workers > 0 && options_.workers == options_.worker_addresses.size());
  auto [failed, failing] = kj::newPromiseAndFulfiller<void>();
  failing_ = kj::mv(failing);
  failed_ = failed.fork();
  options_.incarnation = peers_.self().incarnation;
  options_.chunk_bytes = chunk_bytes;
  peers_.serve(host_);
}

PsServer::~PsServer() noexcept(false) = default;

void PsServer::startData(std::unique_ptr<optimizer::UpdateRunner> runner) {
  DTF_CHECK(runner != nullptr && bulk_ == nullptr);
  host_.start(shardOptions(options_, task_.finished_workers), std::move(runner),
              std::make_unique<ShardPeers>(control_, peers_), replicaLink());
  bulk_ = std::make_unique<wire::ConnectionSet>(
      host_.data(), [](const void*) {}, net::RpcOptions{}.calls_bytes_max);
}

// Called on the data loop, which uses the link.
std::unique_ptr<replication::ReplicaLink> PsServer::replicaLink() {
  if (task_.job.durability.kind != cluster::Durability::kReplica) return nullptr;
  const uint32_t keeper = replication::backupOf(options_.self.index, options_.ps_tasks);
  return std::make_unique<wire::PsReplicaLink>(
      host_.data(), peers_.self(), keeper, task_.job.cluster.host(keeper).address,
      wire::PsReplicaLink::Events{
          [this] { host_.shard().backup().onBackup(); },
          [this](uint64_t ticket) { host_.shard().backup().onHeard(ticket); },
          [this](const Error& error) {
            control_.post([this, error] {
              if (!ending_) end(error, 0);
            });
          }});
}

void PsServer::stopData() {
  bulk_ = nullptr;
  host_.stop();
}

void PsServer::start(std::function<void()> ending, std::function<void()> ended) {
  DTF_CHECK(ending != nullptr && ended != nullptr && on_ended_ == nullptr);  // once
  on_ending_ = std::move(ending);
  on_ended_ = std::move(ended);
  watching_ = watch().eagerlyEvaluate([this](kj::Exception&& e) {
    // end() has failed the watch's own request, too (failAll()). A second end() would not wait for
    // the last replies.
    if (!ending_) end(net::toError(e), 0);
  });
}

int PsServer::result() const {
  if (error_) throw Error(*error_);
  return exit_code_;
}

void PsServer::serveControl(kj::Own<net::MessageStream> stream, std::string peer,
                            const Extend& extend) {
  const auto follow = [this](TaskId task, Incarnation incarnation,
                             schema::SyncFollower::Client follower) {
    return peers_.follow(task, incarnation, kj::mv(follower));
  };
  connections_.serve(kj::mv(stream), std::move(peer), [&](const wire::ConnectionRef& connection) {
    schema::PsGate::Client gate = makeGate(host_, *this, options_, follow, connection);
    return extend ? extend(kj::mv(gate), connection) : capnp::Capability::Client(kj::mv(gate));
  });
}

void PsServer::serveBulk(kj::Own<net::MessageStream> stream, std::string peer) {
  bulk_->serve(kj::mv(stream), std::move(peer), [this](const wire::ConnectionRef& connection) {
    return makeDataGate(host_, options_, connection);
  });
}

kj::Promise<PsReport> PsServer::report() {
  return host_
      .askNow<PsReport>([this](shard::Shard& shard) {
        PsReport report{.shard = shard.status(), .elements = shard.elements()};
        report.bulk = wire::loadOf(*bulk_);
        return report;
      })
      .then([this](PsReport report) {
        report.control = wire::loadOf(connections_);
        return report;
      });
}

void PsServer::opened(const void* key, TaskId worker, Incarnation incarnation) {
  DTF_CHECK(key != nullptr && worker.job == JobKind::kWorker && worker.index < options_.workers);
  sessions_[key] = {worker, incarnation};
  came_.insert(worker.index);
  log::info("event=joined worker={} workers_connected={}", worker.name(), sessions_.size());
}

void PsServer::jobFailed(const Error& error) {
  if (ending_) return;
  const bool all_came = came_.size() == options_.workers;
  end(error, 0, all_came ? Duration{0} : kLateWorkers);
}

void PsServer::left(uint32_t rank, Incarnation incarnation, const std::string& reason) {
  DTF_CHECK(rank < options_.workers && !reason.empty());
  std::erase_if(departures_, [rank](const Departure& other) { return other.rank == rank; });
  departures_.push_back({rank, incarnation, reason});
}

// Returns the earliest departure of a worker that has not come back since; null: none.
const PsServer::Departure* PsServer::firstDeparture(const shard::ShardStatus& status) const {
  for (const Departure& departure : departures_) {
    const replication::Member& member = status.members[departure.rank];
    if (member.state == replication::MemberState::kLost &&
        member.incarnation == departure.incarnation)
      return &departure;
  }
  return nullptr;
}

// Handles the end of a control connection. The worker has finished, is gone, or connects again at
// once. A worker that is gone is marked lost before its lease runs out.
void PsServer::onClosed(const void* key) {
  const auto found = sessions_.find(key);
  if (found == sessions_.end()) return;
  const Session session = found->second;
  sessions_.erase(found);
  if (!isConnected(session)) disconnected_[session] = clock_.now();
  loseDisconnected();
}

bool PsServer::isConnected(const Session& session) const {
  return std::any_of(sessions_.begin(), sessions_.end(),
                     [&](const auto& other) { return other.second == session; });
}

// Marks the workers lost that have not connected again in time. They have no time in a job that
// waits for no return (timeouts.rejoin_seconds: 0), and in one that is stopping.
void PsServer::loseDisconnected() {
  const bool may_return = options_.timeouts.rejoin_seconds > 0 && !options_.stop_wanted;
  const Duration lease = fromSeconds(options_.timeouts.lease_seconds);
  const Duration patience = may_return ? std::min(kReturnMax, lease / 10) : Duration{0};
  for (auto at = disconnected_.begin(); at != disconnected_.end();) {
    const auto& [session, since] = *at;
    const bool is_back = isConnected(session);
    if (!is_back && clock_.now() - since < patience) {
      ++at;
      continue;
    }
    if (!is_back) lose(session);
    at = disconnected_.erase(at);
  }
}

void PsServer::lose(const Session& session) {
  DTF_CHECK(session.worker.job == JobKind::kWorker && session.worker.index < options_.workers);
  closed_[session.worker.index] = session.incarnation;
  host_.data().post([this, session] {
    const shard::ShardStatus status = host_.shard().status();
    const replication::Member& member = status.members[session.worker.index];
    if (member.state != replication::MemberState::kJoined ||
        member.incarnation != session.incarnation)
      return;
    host_.shard().workers().markLost(session.worker.index);
  });
}

void PsServer::onSignal(int number) {
  if (ending_) return on_ended_();  // without waiting for the last replies
  if (came_.empty()) {              // there is nothing to save
    const bool pauses = number == SIGTERM && task_.job.launch.pauses();
    return end(std::nullopt, pauses ? kPausedExitCode : 0);
  }
  if (options_.stop_wanted) return end(std::nullopt, 128 + number);
  options_.stop_wanted = true;
  stop_signal_ = number;
  stop_deadline_ = clock_.now() + fromSeconds(options_.timeouts.stop_seconds);
  log::info("event=stopping signal={} for=\"the workers to save and finish, {:g} s at most\"",
            number, options_.timeouts.stop_seconds);
}

// Returns how a lost process ended; nullopt: unknown, its lease has run out.
std::optional<std::string> PsServer::endOf(uint32_t rank, Incarnation incarnation) const {
  for (const Departure& departure : departures_)
    if (departure.rank == rank && departure.incarnation == incarnation)
      return "it has left: " + departure.reason;
  const auto closed = closed_.find(rank);
  if (closed == closed_.end() || closed->second != incarnation) return std::nullopt;
  return "its connection was closed before it had finished";
}

// Logs each lost process once, with the reason.
void PsServer::logLost(const shard::ShardStatus& status) {
  DTF_CHECK(status.members.size() == options_.workers);
  for (uint32_t rank = 0; rank < status.members.size(); ++rank) {
    const replication::Member& member = status.members[rank];
    if (member.state != replication::MemberState::kLost || lost_[rank] == member.incarnation)
      continue;
    lost_[rank] = member.incarnation;
    const std::optional<std::string> end = endOf(rank, member.incarnation);
    const std::string worker = replication::workerName(rank);
    const std::string reason =
        end.value_or(fmt::format("no heartbeat for {:g} s", options_.timeouts.lease_seconds));
    // The signal that stops this ps has ended these workers, too: no loss to warn of.
    if (options_.stop_wanted && end) {
      log::info("event=worker_left worker={} reason=\"{}\"", worker, reason);
      continue;
    }
    log::warning("event=worker_lost worker={} reason=\"{}\"", worker, reason);
    notify({{"event", "worker_lost"},
            {"worker", worker},
            {"attempt", member.incarnation.attempt()},
            {"lease", !end},  // has run out: the process may still exist
            {"reason", reason}});
  }
}

// Returns whether a signal to this ps has ended the job before its last step, with parameters that
// no checkpoint holds.
bool PsServer::cutShort(const shard::ShardStatus& status) const {
  return stop_signal_ != 0 && status.initialised && !status.saved &&
         status.coordinator.global_step < status.steps;
}

kj::Promise<void> PsServer::watch() {
  return control_.timer()
      .afterDelay(net::toKj(kWatchEvery))
      .then([this] {
        loseDisconnected();
        return host_.askNow<shard::ShardStatus>([](shard::Shard& shard) { return shard.status(); });
      })
      .then([this](const shard::ShardStatus& status) {
        judge(status);
        return watch();
      });
}

// Ends the job if all workers have finished, or if the job can't go on without the missing ones.
void PsServer::judge(const shard::ShardStatus& status) {
  const auto count = [&](replication::MemberState state) {
    return std::count_if(status.members.begin(), status.members.end(),
                         [&](const replication::Member& member) { return member.state == state; });
  };
  const auto finished = count(replication::MemberState::kFinished);
  const auto joined = count(replication::MemberState::kJoined);
  const auto lost = count(replication::MemberState::kLost);
  DTF_CHECK(finished + joined + lost + count(replication::MemberState::kAwaited) ==
            static_cast<int64_t>(options_.workers));
  const TimePoint now = clock_.now();
  if (ending_) return;
  logLost(status);
  // Without its chief a job has no result, so this ps waits for a lost chief.
  const bool has_result = status.members[kChief.index].state == replication::MemberState::kFinished;
  const bool awaits = count(replication::MemberState::kAwaited) > 0;
  // The live workers connect to a restarted ps within a lease, to finish there, too.
  const bool all_came =
      !awaits || now - complete_since_ >= fromSeconds(options_.timeouts.lease_seconds);
  if (has_result && joined == 0 && all_came) {
    log::info(
        "event=job_finished global_step={} gradients_applied={} gradients_stale={} workers_lost={} "
        "gradient_bytes={} messages_damaged={}",
        status.coordinator.global_step, status.coordinator.gradients_applied,
        status.coordinator.gradients_stale, static_cast<int64_t>(options_.workers) - finished,
        status.gradient_bytes, net::damagedMessages());
    if (paused_) return end(std::nullopt, kPausedExitCode);
    return end(std::nullopt, cutShort(status) ? 128 + stop_signal_ : 0);
  }
  if (options_.stop_wanted && (joined == 0 || now >= stop_deadline_))
    return end(std::nullopt, 128 + stop_signal_);
  // The last worker has left, so no task can make progress.
  if (const Departure* first = firstDeparture(status); first != nullptr && joined == 0)
    return end(Error(ErrorCode::kUnavailable,
                     fmt::format("no worker is left; {} left first: {}",
                                 replication::workerName(first->rank), first->reason)),
               0);
  // While a worker trains, the coordinator handles lost ones. Without any, the job waits for them.
  const bool waits = awaits || (lost > 0 && joined == 0);
  if (!waits) {
    complete_since_ = now;
    return;
  }
  if (now - reported_ >= kReportEvery) {
    reported_ = now;
    log::info("event=waiting for=\"{}\"", status.missing);
  }
  judgeMissing(status, awaits, joined > 0);
}

// Handles missing workers that the job waits for: after its patience, this ps gives them up or ends
// the job.
void PsServer::judgeMissing(const shard::ShardStatus& status, bool awaits, bool any_joined) {
  const TimePoint now = clock_.now();
  const bool starting = awaits || !status.initialised;
  // Training starts only when all workers have come. So this ps was restarted, and the live workers
  // connect within a lease.
  const bool is_restarted = awaits && status.trains;
  // After the last step no worker is needed: one that stays away had finished before.
  const bool is_trained = awaits && any_joined && status.initialised && status.steps > 0 &&
                          status.coordinator.global_step >= status.steps;
  // A second longer than the workers wait for each other, so that their own error comes first.
  // After the last step it is half as long, to release the finished workers before they give up.
  const double patience = is_restarted ? options_.timeouts.lease_seconds
                          : is_trained ? options_.timeouts.start_seconds / 2
                          : starting   ? options_.timeouts.start_seconds
                                       : options_.timeouts.rejoin_seconds;
  if (now - complete_since_ < fromSeconds(patience) + std::chrono::seconds(1)) return;
  // The missing workers were lost before. The coordinator decides how the others go on.
  if (is_restarted || is_trained) {
    complete_since_ = now;
    log::warning("event=given_up workers=\"{}\" reason=\"{}\"", status.missing,
                 is_restarted ? "others train without them" : "the training is done");
    return host_.data().post([this] { host_.shard().workers().giveUpAwaited(); });
  }
  end(Error(ErrorCode::kUnavailable,
            fmt::format("a worker is missing: {}. Look at its log, or raise timeouts.{} ({:g})",
                        status.missing, starting ? "start_seconds" : "rejoin_seconds", patience)),
      0);
}

}  // namespace dtf::host
