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

// Of one life.
constexpr Duration kVirtualMax = seconds(400);
constexpr size_t kProblemsMax = 5;

}  // namespace

ClusterSim::ClusterSim(const Plan& plan, std::function<void(const std::string&)> print)
    : plan_(plan),
      print_(std::move(print)),
      random_(streamOf(plan.seed, Stream::kWorld)),
      network_(scheduler_, random_, plan_.network),
      ledger_(plan_, [this](const std::string& what) { complain(what); }),
      ps_(plan_.ps_tasks),
      ranks_(plan_.workers),
      ps_started_(plan_.ps_tasks),
      ps_errors_(plan_.ps_tasks) {
  disk_.makeFolder(kRunDir);
  disk_.syncFolder("/");
  // Which operations fail is drawn beforehand.
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
  ps_errors_[index].reset();
  ps_[index] = std::make_unique<SimPs>(
      environment_, plan_, index, ++ps_started_[index], [this](SimPs& ps) { onPsEnded(ps); },
      [this, index] { onUpdate(index); });
  if (launcher_) launcher_->onStarted({JobKind::kPs, index});
  if (launcher_) launcher_->onReady({JobKind::kPs, index});
}

void ClusterSim::onUpdate(uint32_t index) {
  if (index == 1 && ++follower_updates_ == Fault::kUpdateOfMoment)
    applySince(Fault::Since::kFollowerUpdates);
}

void ClusterSim::onPsEnded(SimPs& ps) {
  const uint32_t index = ps.index();
  ps_errors_[index] = ps.error();
  log(fmt::format("ps/{} ends: {}", index,
                  ps_errors_[index] ? ps_errors_[index]->message() : "all have finished"));
  if (ps_errors_[index]) {
    checkError(ps.process()->name, *ps_errors_[index]);
  } else {
    const ps::ShardStatus status = ps.status();
    if (status.callers_waiting > 0)
      complain(fmt::format("ps/{} ends with {} callers waiting", index, status.callers_waiting));
    const uint64_t end = ledger_.finals() > 0 ? ledger_.finalStep() : plan_.steps;
    const uint64_t begin = ps.word().origin_cut.step;  // 0: initial values
    const uint64_t due = (end - begin) * (plan_.sync() ? plan_.aggregate : 1);
    // One that was lost behind the end has nothing to show, and one that was filled from its replica
    // counts from there.
    const bool refilled = plan_.replicas && ps_lost_;
    const bool known = (ledger_.finals() > 0 || !stopped_) && ps.word().epoch > 0 && !refilled;
    const bool counts = known && (plan_.sync() || index == 0);
    if (counts && status.coordinator.gradients_applied != due)
      complain(fmt::format("ps/{} ends with {} gradients applied, {} are due", index,
                           status.coordinator.gradients_applied, due));
  }
  // A process that ends by itself closes its connections behind what it has sent.
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
  ranks_[rank].alive.push_back(std::make_unique<SimWorker>(
      environment_, plan_, ledger_, fibers_, rank, number,
      SimWorker::Hooks{[this](SimWorker& worker) { onJoined(worker); },
                       [this](SimWorker& worker) {
                         if (launcher_) launcher_->onReady({JobKind::kWorker, worker.rank()});
                       },
                       [this](SimWorker& worker) { onWorkerEnded(worker); },
                       [this](const std::string& line) { log(line); },
                       [this](uint64_t step) { saved_.insert(step); },
                       [this](bool held, std::optional<uint64_t> step) { onRestored(held, step); },
                       [this] { return stopped_; }, [this](uint64_t step) { onRest(step); },
                       [this](const checkpoint::GoingBack& target) { onGoingBack(target); },
                       [this] { ++report_.went_back; },
                       [this] { applySince(Fault::Since::kFirstTrained); }}));
  if (launcher_) launcher_->onStarted({JobKind::kWorker, rank});
}

bool ClusterSim::mayStartWorker(uint32_t rank) {
  if (ranks_[rank].started < plan_.processesMax(life_)) return true;
  out_of_processes_ = true;
  return false;
}

// As a service manager does for tasks started by hand, unless the job is lost.
void ClusterSim::startWorkerLater(uint32_t rank) {
  if (ps_killed_ || !mayStartWorker(rank)) return;
  const Duration delay = milliseconds(10 + static_cast<int64_t>(random_.below(700)));
  afterInThisLife(delay,
                  [this, rank, number = ranks_[rank].started++] { startWorker(rank, number); });
}

// Every ps has a new process of this rank: the older ones are fenced.
void ClusterSim::onJoined(SimWorker& worker) {
  log(worker.process()->name + " has joined");
  for (auto& other : ranks_[worker.rank()].alive)
    if (other->number() < worker.number()) other->setFenced();
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
  // What is said a second time may come to a ps that has its values no more, and take the place of the
  // call after it there. No client says anything beside its newest call: only that may excuse it.
  const bool gave_way =
      error && worker.repeatsOn() &&
      error->message().find(fmt::format("asked ps/{} again; this call gave way",
                                        *worker.repeatsOn())) != std::string::npos;
  // When the chief has its result, dtf-launch brings no ps back.
  const bool late = launcher_ && ledger_.finals() > 0;
  const bool may_fail = gave_way || late || mayFail();
  if (error && !may_fail && worker.hasTrained() && plan_.onlyPsAreKilled(life()))
    complain(
        fmt::format("{} fails of the loss of a ps: {}", worker.process()->name, error->message()));
  const bool newest = worker.number() + 1 == ranks_[rank].started;
  destroy(worker);
  somebody_finished_ |= !error;
  if (launcher_)
    launcher_->onEnded({JobKind::kWorker, rank}, {error ? exitCode(error->code()) : 0, 0}, error);
  else if (error && newest)
    startWorkerLater(rank);
  endIfOver();
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

// ---- faults

// Of this life, from events of any process.
void ClusterSim::applySince(Fault::Since since) {
  if (!reached_.insert(since).second) return;
  for (const Fault& fault : life().faults)
    if (fault.since == since) afterInThisLife(fault.at, [this, &fault] { apply(fault); });
}

void ClusterSim::apply(const Fault& fault) {
  switch (fault.kind) {
    case Fault::Kind::kKillWorker:
      return killWorker(fault.target);
    case Fault::Kind::kKillPs:
      if (!ps_[fault.target]) return;
      log("FAULT " + fault.text());
      ++report_.faults;
      return killPs(fault.target);
    case Fault::Kind::kFreezeWorker:
      return freezeWorker(fault);
    case Fault::Kind::kFreezePs: {
      if (!ps_[fault.target]) return;
      log("FAULT " + fault.text());
      ++report_.faults;
      ps_was_frozen_ = true;
      // Never sooner than another freeze ends: what is held already would be overtaken.
      TimePoint& until = ps_[fault.target]->process()->frozen_until;
      until = std::max(until, scheduler_.now() + fault.length);
      return;
    }
    case Fault::Kind::kCut:
    case Fault::Kind::kSilence: {
      const size_t count = network_.connections();
      if (count == 0) return;
      const size_t index = fault.target % count;
      log(fmt::format("FAULT {}: {}", fault.text(), network_.describe(index)));
      ++report_.faults;
      if (fault.kind == Fault::Kind::kCut) return network_.cut(index);
      return network_.silence(index, fault.length);
    }
    case Fault::Kind::kStop:
      return stop(fault);
    case Fault::Kind::kKillAll:
      log("FAULT " + fault.text());
      ++report_.faults;
      return killAll();
  }
}

void ClusterSim::killWorker(uint32_t rank) {
  if (ranks_[rank].alive.empty()) return;
  SimWorker& worker = *ranks_[rank].alive.back();
  log("FAULT kill " + worker.process()->name);
  ++report_.faults;
  endWorker(worker, {0, SIGKILL});
}

void ClusterSim::endWorker(SimWorker& worker, launcher::ExitStatus status) {
  const uint32_t rank = worker.rank();
  worker.process()->dead = true;
  network_.killed(worker.process());
  destroy(worker);
  if (launcher_)
    launcher_->onEnded({JobKind::kWorker, rank}, status, std::nullopt);
  else
    startWorkerLater(rank);
  endIfOver();
}

void ClusterSim::killPs(uint32_t index) {
  if (!ps_[index]) return;
  log(fmt::format("ps/{} is killed", index));
  ps_errors_[index] = Error(ErrorCode::kUnavailable, "killed");
  ps_[index]->process()->dead = true;
  network_.killed(ps_[index]->process());
  ps_[index] = nullptr;
  const bool comes_back = launcher_ ? !launcher_->stopping() : plan_.psComeBack();
  if (!comes_back) {
    ps_killed_ = true;
    if (launcher_) launcher_->onEnded({JobKind::kPs, index}, {0, SIGKILL}, std::nullopt);
    return endIfOver();
  }
  ++report_.ps_restarts;
  ps_lost_ = true;
  if (std::none_of(ps_.begin(), ps_.end(), [](const auto& ps) { return ps != nullptr; }))
    for (Rank& rank : ranks_)
      for (auto& worker : rank.alive) worker->clearFenced();
  if (launcher_)
    return launcher_->onEnded({JobKind::kPs, index}, {0, SIGKILL}, std::nullopt), endIfOver();
  ++ps_due_;
  const Duration delay = milliseconds(10 + static_cast<int64_t>(random_.below(1500)));
  afterInThisLife(delay, [this, index] {
    --ps_due_;
    ledger_.forgetInitial(index);
    if (!ps_[index]) startPs(index);
    applySince(Fault::Since::kPsIsBack);
  });
}

void ClusterSim::killAll() {
  all_killed_ = true;
  for (Rank& rank : ranks_)
    while (!rank.alive.empty()) {
      rank.alive.back()->process()->dead = true;
      destroy(*rank.alive.back());
    }
  for (uint32_t i = 0; i < ps_.size(); ++i) {
    if (!ps_[i]) continue;
    ps_errors_[i] = Error(ErrorCode::kUnavailable, "killed");
    ps_[i]->process()->dead = true;
    network_.killed(ps_[i]->process());
    ps_[i] = nullptr;
  }
  endIfOver();
}

// Ctrl-C or SIGTERM. Whoever does not train yet, or any more, has nothing to save: when nobody
// does, all end at once.
void ClusterSim::stop(const Fault& fault) {
  log("FAULT " + fault.text());
  ++report_.faults;
  applySince(Fault::Since::kStopped);
  if (launcher_ && fault.successor) return launcher_->onStopRequest();
  std::vector<SimWorker*> training;
  for (Rank& rank : ranks_)
    if (!rank.alive.empty() && rank.alive.back()->training())
      training.push_back(rank.alive.back().get());
  const auto one = [&] { return training[fault.target % training.size()]; };
  const uint32_t rank = training.empty() ? fault.target : one()->rank();
  if (launcher_) return signalTask({JobKind::kWorker, rank}, SIGTERM);
  if (training.empty()) return killAll();
  stopped_ = true;
  if (!fault.successor) return one()->requestStop();
  for (auto& ps : ps_)
    if (ps) ps->signal();
}

// A worker that is frozen for much longer than its lease is fenced when it goes on.
void ClusterSim::freezeWorker(const Fault& fault) {
  Rank& rank = ranks_[fault.target];
  if (rank.alive.empty()) return;
  SimWorker& worker = *rank.alive.back();
  const ProcessRef process = worker.process();
  log(fmt::format("FAULT freeze {} for {:.3f} s{}", process->name, toSeconds(fault.length),
                  fault.successor && !launcher_ ? ", start another meanwhile" : ""));
  ++report_.faults;
  process->frozen_until = std::max(process->frozen_until, scheduler_.now() + fault.length);
  const double lease = plan_.timeouts.lease_seconds;
  // Bytes that were under way for long may keep the lease a while.
  const bool silent = life().has(Fault::Kind::kSilence);
  if (worker.joined() && !silent && toSeconds(fault.length) > lease + 1) {
    scheduler_.at(process->frozen_until - Duration(1), nullptr, [this, process] {
      if (ps_was_frozen_ || ps_lost_ || process->dead) return;
      for (Rank& ranks : ranks_)
        for (auto& other : ranks.alive)
          if (other->process() == process) other->setFenced();
    });
  }
  if (fault.successor && !launcher_ && mayStartWorker(fault.target)) {
    afterInThisLife(fault.length / 2, [this, target = fault.target, number = rank.started++] {
      startWorker(target, number);
    });
  }
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
  ps_due_ = 0;
  ps_killed_ = ps_lost_ = all_killed_ = stopped_ = ps_was_frozen_ = out_of_processes_ = false;
  somebody_finished_ = false;
  reached_.clear();
  joined_.clear();
  follower_updates_ = 0;
  ps_errors_.assign(plan_.ps_tasks, std::nullopt);
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
  // dtf-launch has made all processes before it looks at them; a person takes longer.
  const uint64_t apart = launcher_ ? 20 : 300;
  const auto soon = [&] { return milliseconds(static_cast<int64_t>(random_.below(apart))); };
  for (uint32_t i = 0; i < plan_.ps_tasks; ++i) afterInThisLife(soon(), [this, i] { startPs(i); });
  for (uint32_t i = 0; i < plan_.workers; ++i)
    afterInThisLife(milliseconds(apart) + soon(),
                    [this, i, number = ranks_[i].started++] { startWorker(i, number); });
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
