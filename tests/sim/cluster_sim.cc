#include "tests/sim/cluster_sim.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "tests/sim/sim_supervisor.h"

namespace dtf::sim {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// In one life.
constexpr Duration kVirtualMax = seconds(400);
constexpr size_t kProblemsMax = 5;

}  // namespace

ClusterSim::ClusterSim(const Plan& plan, std::function<void(const std::string&)> print)
    : plan_(plan),
      print_(std::move(print)),
      random_(streamOf(plan.seed, Stream::kWorld)),
      network_(scheduler_, random_, plan_.network),
      ledger_(plan_, [this](const std::string& what) { complain(what); }),
      ps_(plan_.shards()),
      ranks_(plan_.workers),
      ps_started_(plan_.shards()),
      ps_errors_(plan_.shards()) {
  disk_.makeFolder(kRunDir);
  disk_.syncFolder("/");
  // Draws beforehand which operations fail.
  Random errors = streamOf(plan_.seed, Stream::kDiskErrors);
  constexpr size_t kOperationsMax = 5000;
  for (size_t i = 0; plan_.disk_error_share > 0 && i < kOperationsMax; ++i)
    if (errors.uniform() < plan_.disk_error_share)
      disk_.failAt(i, errors.below(2) == 0 ? ENOSPC : EIO);
}

ClusterSim::~ClusterSim() noexcept(false) {
  for (Rank& rank : ranks_)
    while (!rank.alive.empty()) destroy(*rank.alive.front());
  for (auto& ps : ps_) {
    if (!ps) continue;
    ps->process()->dead = true;
    ps = nullptr;
  }
}

void ClusterSim::log(const std::string& line) {
  scheduler_.mix(line);
  if (print_)
    print_(fmt::format("{:12.6f} {}", toSeconds(scheduler_.now().time_since_epoch()) - 1, line));
}

void ClusterSim::complain(const std::string& what) {
  log("PROBLEM " + what);
  if (report_.problems.size() < kProblemsMax) report_.problems.push_back(what);
}

void ClusterSim::afterInThisLife(Duration delay, std::function<void()> event) {
  scheduler_.after(delay, nullptr, [this, begun = life_, event = std::move(event)] {
    if (life_ == begun && !all_killed_) event();
  });
}

// ---- processes

void ClusterSim::startPs(uint32_t index) {
  if (launcher_ && launcher_->stopping()) return;
  log(fmt::format("ps/{} starts", index));
  startShard(index, ++ps_started_[index]);
  if (launcher_) launcher_->onStarted({JobKind::kPs, index});
  if (launcher_) launcher_->onReady({JobKind::kPs, index});
}

void ClusterSim::startShard(uint32_t index, uint32_t attempt) {
  ps_errors_[index].reset();
  ps_[index] = std::make_unique<SimPs>(
      environment_, plan_, index, attempt,
      launcher_ ? launcher_->finishedWorkers() : std::vector<uint32_t>{},
      [this](SimPs& ps) { onPsEnded(ps); }, [this, index] { onUpdate(index); });
}

void ClusterSim::onStep() {
  if (lost_at_ && ledger_.furthestStep() >= *lost_at_ + 2) applySince(Fault::Since::kTrainsOn);
}

void ClusterSim::onUpdate(uint32_t index) {
  if (index == 1 && ++follower_updates_ == Fault::kUpdateOfMoment)
    applySince(Fault::Since::kFollowerUpdates);
}

// Checks the promises of a ps that has ended by itself.
void ClusterSim::judgeEnd(SimPs& ps) {
  const uint32_t index = ps.index();
  ps_errors_[index] = ps.error();
  log(fmt::format("ps/{} ends: {}", index,
                  ps_errors_[index] ? ps_errors_[index]->message() : "all have finished"));
  if (ps_errors_[index]) {
    checkError(ps.process()->name, *ps_errors_[index]);
  } else {
    const shard::ShardStatus status = ps.status();
    // A ps that is started again at the job's end still holds the requests of workers that have
    // finished since.
    if (status.callers_waiting > 0 && !(ps_lost_ && somebody_finished_))
      complain(fmt::format("ps/{} ends with {} callers waiting", index, status.callers_waiting));
    const uint64_t due = ledger_.gradientsDue(ps.held().origin_cut.step);  // 0: initial values
    // A ps that was lost after the end shows no count; a ps that was refilled counts from its
    // replica's values.
    const bool refilled = plan_.replicas && ps_lost_;
    const bool known = (ledger_.finals() > 0 || !stopped_) && ps.held().epoch > 0 && !refilled;
    const bool counts = known && (plan_.sync() || index == 0);
    if (counts && status.coordinator.gradients_applied != due)
      complain(fmt::format("ps/{} ends with {} gradients applied, {} are due", index,
                           status.coordinator.gradients_applied, due));
  }
}

void ClusterSim::onPsEnded(SimPs& ps) {
  const uint32_t index = ps.index();
  if (const TaskId host = plan_.host(index); host.job == JobKind::kWorker)
    return onHostedShardEnded(host.index);
  judgeEnd(ps);
  // A process that ends by itself closes its connections after the bytes it has sent.
  const ProcessRef process = ps.process();
  const launcher::ExitStatus status{ps.exitCode(), 0};
  ps_[index] = nullptr;
  network_.killed(process);
  process->dead = true;
  const bool was_told = status.code == 128 + SIGTERM;
  if (launcher_)
    launcher_->onEnded({JobKind::kPs, index}, status, was_told ? std::nullopt : ps_errors_[index]);
  endIfOver();
}

void ClusterSim::startWorker(uint32_t rank, uint32_t number) {
  const bool served = ps_due_ > 0 || std::any_of(ps_.begin(), ps_.end(),
                                                 [](const auto& ps) { return ps != nullptr; });
  if (launcher_ ? launcher_->stopping() : !served) return endIfOver();
  if (number > ranks_[rank].first) ++report_.restarts;
  log(fmt::format("worker/{}.{} starts", rank, number));
  if (const auto shard = plan_.shardOf(rank)) startShard(*shard, number + 1);
  ranks_[rank].newest = number;
  ranks_[rank].alive.push_back(std::make_unique<SimWorker>(
      environment_, plan_, ledger_, fibers_, rank, number,
      SimWorker::Hooks{[this](SimWorker& worker) { onJoined(worker); }, [this] { onStep(); },
                       [this](SimWorker& worker) {
                         if (launcher_) launcher_->onReady({JobKind::kWorker, worker.rank()});
                       },
                       [this](SimWorker& worker) { onWorkerEnded(worker); },
                       [this](const std::string& line) { log(line); },
                       [this](uint64_t step) { saved_.insert(step); },
                       [this](bool held, std::optional<uint64_t> step) { onRestored(held, step); },
                       [this] { return stopped_; },
                       [this, rank, number]() -> std::optional<uint64_t> {
                         if (!launcher_ || number == ranks_[rank].first) return std::nullopt;
                         return ledger_.furthestStep();
                       },
                       [this](uint64_t step) { onRest(step); },
                       [this](const checkpoint::GoingBack& target) { onGoingBack(target); },
                       [this](size_t ps) { report_.refilled += ps; },
                       [this] { ++report_.went_back; },
                       [this](SimWorker& worker, Fault::Since moment, bool is_saved) {
                         onMoment(worker, moment, is_saved);
                       }}));
  if (launcher_) launcher_->onStarted({JobKind::kWorker, rank});
}

bool ClusterSim::mayStartWorker(uint32_t rank) {
  if (ranks_[rank].started < plan_.processesMax(life_)) return true;
  out_of_processes_ = true;
  ledger_.mayGiveUp();
  return false;
}

// Restarts a task that was started by hand, as a service manager does, unless the job is lost.
void ClusterSim::startWorkerLater(uint32_t rank) {
  if (ps_killed_) return;
  if (!mayStartWorker(rank)) {
    ps_killed_ |= plan_.workers_host;  // its shard is gone for good
    return;
  }
  startWorkerAfter(milliseconds(10 + static_cast<int64_t>(random_.below(700))), rank);
}

// Every ps has a new process of this rank: the older ones are fenced.
void ClusterSim::onJoined(SimWorker& worker) {
  log(worker.process()->name + " has joined");
  for (auto& other : ranks_[worker.rank()].alive) {
    if (other.get() == &worker) break;
    other->setFenced();
  }
  joined_.insert(worker.rank());
  if (joined_.size() == ranks_.size()) applySince(Fault::Since::kAllJoined);
}

void ClusterSim::onWorkerEnded(SimWorker& worker) {
  const uint32_t rank = worker.rank();
  const std::optional<Error> error = worker.error();
  log(fmt::format(
      "{} ends: {}", worker.process()->name,
      error ? fmt::format("{}: {}", errorCodeName(error->code()), error->message()) : "finished"));
  if (error) checkError(worker.process()->name, *error);
  if (worker.finishedUnheard() && plan_.isCalm(life()) && !mayFail())
    complain(worker.process()->name + " was not let go, though nothing was hurt");
  // A repeated request may reach a ps that has lost its values, and there displace the call after
  // it. No real client sends anything beside its newest call, so only a repeat may excuse this.
  const bool gave_way =
      error && worker.repeatsOn() &&
      error->message().find(fmt::format("asked ps/{} again; this call gave way",
                                        *worker.repeatsOn())) != std::string::npos;
  // When the chief has its result, dtf-launch brings no ps back.
  const bool late = launcher_ && ledger_.finals() > 0;
  const bool is_lost = plan_.isOfTheEnd() && !plan_.mustEndWell(life());
  const bool may_fail = gave_way || late || is_lost || mayFail();
  if (error && !may_fail && worker.hasTrained() && plan_.onlyPsAreKilled(life()))
    complain(
        fmt::format("{} fails of the loss of a ps: {}", worker.process()->name, error->message()));
  const bool newest = worker.number() + 1 == ranks_[rank].started;
  const bool is_latest = worker.number() == ranks_[rank].newest;
  const bool gave_way_to_another =
      error && error->message().find("was replaced by a newer process") != std::string::npos;
  if (is_latest && gave_way_to_another)
    complain(worker.process()->name + " gave way to an earlier process of its rank");
  destroy(worker);
  somebody_finished_ |= !error;
  if (plan_.workers_host)
    onHostTrained(rank, error);
  else if (launcher_)
    launcher_->onEnded({JobKind::kWorker, rank}, {error ? exitCode(error->code()) : 0, 0}, error);
  else if (error && newest)
    startWorkerLater(rank);
  if (!error) applySince(Fault::Since::kFirstLeft);
  if (!error && rank == kChief.index) applySince(Fault::Since::kChiefLeft);
  endIfOver();
}

// Mirrors WorkerJob: a chief that cannot save the end reports that in place of its result. A chief
// that was stopped without checkpoints has no result.
void ClusterSim::onMoment(const SimWorker& worker, Fault::Since moment, bool is_saved) {
  log(fmt::format("{} {}", worker.process()->name, momentText(moment)));
  const bool is_result = plan_.checkpoints ? is_saved : !stopped_;
  if (moment == Fault::Since::kResult && is_result && launcher_)
    afterInThisLife({}, [this, is_done = ledger_.finalStep() == plan_.steps] {
      launcher_->onResult(is_done);  // may end the chief, which reports it
    });
  applySince(moment);
}

void ClusterSim::destroy(SimWorker& worker) {
  auto& alive = ranks_[worker.rank()].alive;
  const auto at = std::find_if(alive.begin(), alive.end(),
                               [&](const auto& other) { return other.get() == &worker; });
  std::unique_ptr<SimWorker> dying = std::move(*at);
  alive.erase(at);
  const ProcessRef process = dying->process();
  dying = nullptr;
  network_.killed(process);
  process->dead = true;
}

// ---- the end

void ClusterSim::endIfOver() {
  if (ps_due_ > 0 && !all_killed_) return;
  if (launcher_ && !launcher_->finished() && !all_killed_) return;
  for (const auto& ps : ps_)
    if (ps) return;
  for (const Rank& rank : ranks_)
    if (!rank.alive.empty()) return;
  if (over_->isWaiting()) over_->fulfill();
}

void ClusterSim::beginLife() {
  began_ = scheduler_.now();
  ps_due_ = 0;
  ps_killed_ = ps_lost_ = all_killed_ = stopped_ = ps_was_frozen_ = out_of_processes_ = false;
  somebody_finished_ = false;
  reached_.clear();
  joined_.clear();
  follower_updates_ = 0;
  lost_at_.reset();
  ps_errors_.assign(plan_.shards(), std::nullopt);
  std::vector<uint32_t> first;
  for (Rank& rank : ranks_) {
    rank.first = rank.started;
    first.push_back(rank.first);
  }
  ledger_.beginLife(std::move(first), newest_epoch_, newest_.value_or(0), newest_arenas_);
  launcher_ = nullptr;
  if (plan_.launched) beginLaunch();
  ++report_.lives;
  report_.restored += newest_ ? 1 : 0;
  if (life_ > 0) log(fmt::format("LIFE {}", life_ + 1));
}

void ClusterSim::runLife() {
  beginLife();
  auto pair = kj::newPromiseAndFulfiller<void>();
  over_ = kj::mv(pair.fulfiller);
  // dtf-launch starts all processes before it looks at them; a user takes longer.
  const uint64_t apart = launcher_ ? 20 : 300;
  const auto soon = [&] { return milliseconds(static_cast<int64_t>(random_.below(apart))); };
  for (uint32_t i = 0; i < plan_.ps_tasks; ++i) afterInThisLife(soon(), [this, i] { startPs(i); });
  for (uint32_t i = 0; i < plan_.workers; ++i) startWorkerAfter(milliseconds(apart) + soon(), i);
  for (const Fault& fault : life().faults)
    if (fault.since == Fault::Since::kStart)
      afterInThisLife(milliseconds(apart + 1) + fault.at, [this, fault] { apply(fault); });
  const uint64_t too_long = scheduler_.after(kVirtualMax, nullptr, [this] {
    complain(fmt::format("the job has not ended after {:.0f} s", toSeconds(kVirtualMax)));
    killAll();
  });
  pair.promise.wait(wait_scope_);
  scheduler_.cancel(too_long);
  report_.applied += ledger_.applied();
  report_.given_up_steps += ledger_.givenUp();
  judge();
  judgeDisk();
}

Report ClusterSim::run() {
  for (life_ = 0; life_ < plan_.lives.size() && report_.problems.empty(); ++life_) runLife();
  life_ = plan_.lives.size() - 1;
  report_.hash = scheduler_.hash();
  report_.stale = ledger_.stale();
  report_.fenced = ledger_.forbidden();
  report_.events = scheduler_.eventsDone();
  report_.virtual_seconds = toSeconds(scheduler_.now().time_since_epoch()) - 1;
  return report_;
}

Report runSeed(uint64_t seed) {
  ClusterSim sim(makePlan(seed), nullptr);
  return sim.run();
}

}  // namespace dtf::sim
