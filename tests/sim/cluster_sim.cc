#include "tests/sim/cluster_sim.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "common/checkpoint/checkpoint_folder.h"
#include "common/checkpoint/restore.h"
#include "tests/sim/sim_supervisor.h"

namespace dtf::sim {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kVirtualMax = seconds(400);
constexpr size_t kProblemsMax = 5;

}  // namespace

ClusterSim::ClusterSim(const Plan& plan, std::function<void(const std::string&)> print)
    : plan_(plan),
      print_(std::move(print)),
      random_(plan.seed, 2),
      network_(scheduler_, random_, plan_.network),
      ledger_(plan_, [this](const std::string& what) { complain(what); }),
      ps_(plan_.ps_tasks),
      ranks_(plan_.workers),
      ps_errors_(plan_.ps_tasks) {
  disk_.makeFolder(kRunDir);
  disk_.syncFolder("/");
  // Which operations fail is drawn beforehand.
  Random errors(plan_.seed, 5);
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

// ---- processes

void ClusterSim::startPs(uint32_t index) {
  log(fmt::format("ps/{} starts", index));
  ps_[index] =
      std::make_unique<SimPs>(environment_, plan_, index, [this](SimPs& ps) { onPsEnded(ps); });
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
    const uint64_t due = plan_.steps * (plan_.sync() ? plan_.aggregate : 1);
    const bool counts = plan_.sync() || index == 0;
    if (counts && status.coordinator.gradients_applied != due)
      complain(fmt::format("ps/{} ends with {} gradients applied, {} are due", index,
                           status.coordinator.gradients_applied, due));
  }
  // A process that ends by itself closes its connections behind what it has sent.
  const ProcessRef process = ps.process();
  ps_[index] = nullptr;
  network_.killed(process);
  process->dead = true;
  endIfOver();
}

void ClusterSim::startWorker(uint32_t rank, uint32_t number) {
  const bool served =
      std::any_of(ps_.begin(), ps_.end(), [](const auto& ps) { return ps != nullptr; });
  if (!served) return endIfOver();
  if (number > 0) ++report_.restarts;
  log(fmt::format("worker/{}.{} starts", rank, number));
  ranks_[rank].alive.push_back(std::make_unique<SimWorker>(
      environment_, plan_, ledger_, fibers_, rank, number,
      SimWorker::Hooks{[this](SimWorker& worker) { onJoined(worker); },
                       [this](SimWorker& worker) { onWorkerEnded(worker); },
                       [this](const std::string& line) { log(line); },
                       [this](uint64_t step) { saved_.insert(step); }}));
}

// As dtf-launch does, unless the job is lost.
void ClusterSim::startWorkerLater(uint32_t rank) {
  if (ps_killed_) return;
  if (ranks_[rank].started >= kProcessesMax) {
    out_of_processes_ = true;
    return;
  }
  const Duration delay = milliseconds(10 + static_cast<int64_t>(random_.below(700)));
  scheduler_.after(delay, nullptr,
                   [this, rank, number = ranks_[rank].started++] { startWorker(rank, number); });
}

// Every ps has a new process of this rank: the older ones are fenced.
void ClusterSim::onJoined(SimWorker& worker) {
  log(worker.process()->name + " has joined");
  for (auto& other : ranks_[worker.rank()].alive)
    if (other->number() < worker.number()) other->setFenced();
}

void ClusterSim::onWorkerEnded(SimWorker& worker) {
  const uint32_t rank = worker.rank();
  const std::optional<Error> error = worker.error();
  log(fmt::format(
      "{} ends: {}", worker.process()->name,
      error ? fmt::format("{}: {}", errorCodeName(error->code()), error->message()) : "finished"));
  if (error) checkError(worker.process()->name, *error);
  const bool newest = worker.number() + 1 == ranks_[rank].started;
  destroy(worker);
  if (error && newest) startWorkerLater(rank);
  endIfOver();
}

// A process may fail because another is gone or slow, and says which.
void ClusterSim::checkError(const std::string& who, const Error& error) {
  report_.errors.push_back(who + ": " + error.message());
  const bool names = error.message().find("ps/") != std::string::npos ||
                     error.message().find("worker/") != std::string::npos;
  // A run directory that can't be written ends the chief at its start.
  const bool disk = error.code() == ErrorCode::kCannotWrite && plan_.disk_error_share > 0;
  const bool expected = disk || error.code() == ErrorCode::kUnavailable ||
                        error.code() == ErrorCode::kDeadline ||
                        error.code() == ErrorCode::kPermission;
  if (!expected || !(names || disk))
    complain(fmt::format("{} ends with an error that it should not: {}: {}", who,
                         errorCodeName(error.code()), error.message()));
  if (plan_.undisturbed() && plan_.disk_error_share == 0)
    complain(fmt::format("{} fails, though nothing went wrong: {}", who, error.message()));
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

void ClusterSim::apply(const Fault& fault) {
  switch (fault.kind) {
    case Fault::Kind::kKillWorker:
      return killWorker(fault.target);
    case Fault::Kind::kKillPs:
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
  }
}

void ClusterSim::killWorker(uint32_t rank) {
  if (ranks_[rank].alive.empty()) return;
  SimWorker& worker = *ranks_[rank].alive.back();
  log("FAULT kill " + worker.process()->name);
  ++report_.faults;
  worker.process()->dead = true;
  network_.killed(worker.process());
  destroy(worker);
  startWorkerLater(rank);
  endIfOver();
}

void ClusterSim::killPs(uint32_t index) {
  if (!ps_[index]) return;
  log(fmt::format("FAULT kill ps/{}", index));
  ++report_.faults;
  ps_killed_ = true;
  ps_errors_[index] = Error(ErrorCode::kUnavailable, "killed");
  ps_[index]->process()->dead = true;
  network_.killed(ps_[index]->process());
  ps_[index] = nullptr;
  endIfOver();
}

// A worker that is frozen for much longer than its lease is fenced when it goes on.
void ClusterSim::freezeWorker(const Fault& fault) {
  Rank& rank = ranks_[fault.target];
  if (rank.alive.empty()) return;
  SimWorker& worker = *rank.alive.back();
  const ProcessRef process = worker.process();
  log(fmt::format("FAULT freeze {} for {:.3f} s{}", process->name, toSeconds(fault.length),
                  fault.successor ? ", start another meanwhile" : ""));
  ++report_.faults;
  process->frozen_until = std::max(process->frozen_until, scheduler_.now() + fault.length);
  const double lease = plan_.timeouts.lease_seconds;
  // Bytes that were under way for long may keep the lease a while.
  const bool silent = std::any_of(plan_.faults.begin(), plan_.faults.end(), [](const Fault& other) {
    return other.kind == Fault::Kind::kSilence;
  });
  if (worker.joined() && !silent && toSeconds(fault.length) > lease + 1) {
    scheduler_.at(process->frozen_until - Duration(1), nullptr, [this, process] {
      if (ps_was_frozen_ || process->dead) return;
      for (Rank& ranks : ranks_)
        for (auto& other : ranks.alive)
          if (other->process() == process) other->setFenced();
    });
  }
  if (fault.successor && rank.started < kProcessesMax) {
    scheduler_.after(
        fault.length / 2, nullptr,
        [this, target = fault.target, number = rank.started++] { startWorker(target, number); });
  }
}

// ---- the end

void ClusterSim::endIfOver() {
  for (const auto& ps : ps_)
    if (ps) return;
  for (const Rank& rank : ranks_)
    if (!rank.alive.empty()) return;
  if (over_->isWaiting()) over_->fulfill();
}

void ClusterSim::judge() {
  report_.finished = std::all_of(ps_errors_.begin(), ps_errors_.end(),
                                 [](const auto& error) { return !error.has_value(); });
  // Once the chief has its result, a ps may end before it has told the others so: they miss it.
  if (!report_.finished && plan_.mustFinish() && !out_of_processes_ && ledger_.finals() == 0)
    complain("the job fails, though every loss could be mended");
  if (report_.finished && !ps_killed_ && ledger_.finals() == 0)
    complain("the job finishes without its chief");
}

// The power goes; then every checkpoint that is visible must be whole, and one place of training;
// and the newest that was said to be saved must be there.
void ClusterSim::judgeCheckpoints() {
  disk_.heal();
  disk_.powerCut(plan_.seed);
  const std::filesystem::path root = std::filesystem::path(kRunDir) / "checkpoints";
  if (!disk_.exists(root)) {
    if (!saved_.empty()) complain("the folder of saved checkpoints is gone");
    return;
  }
  checkpoint::CheckpointFolder folder(disk_, root, Incarnation{1});
  const std::vector<uint64_t> steps = folder.steps();
  for (const uint64_t step : saved_)
    if (std::find(steps.begin(), steps.end(), step) == steps.end())
      complain(fmt::format("the checkpoint of step {} was committed, and is gone", step));
  for (const uint64_t step : steps) {
    const auto verified = checkpoint::verifyCheckpoint(disk_, folder.stepFolder(step),
                                                       checkpoint::VerifyDepth::kFull);
    if (!verified.whole()) {
      complain(fmt::format("the checkpoint of step {} is visible and not whole: {}", step,
                           verified.problems.at(0).reason));
      continue;
    }
    std::vector<std::vector<float>> values(plan_.ps_tasks);
    std::vector<const float*> arenas;
    for (uint32_t ps = 0; ps < plan_.ps_tasks; ++ps) {
      values[ps].resize(ledger_.elements());
      checkpoint::readPart(disk_, folder.stepFolder(step), *verified.manifest,
                           fmt::format("v{}", ps), 0, ledger_.elements(), values[ps].data());
      arenas.push_back(values[ps].data());
    }
    ledger_.onCheckpoint(step, arenas);
    ++report_.checkpoints;
  }
}

Report ClusterSim::run() {
  auto pair = kj::newPromiseAndFulfiller<void>();
  over_ = kj::mv(pair.fulfiller);
  for (uint32_t i = 0; i < plan_.ps_tasks; ++i)
    scheduler_.after(milliseconds(static_cast<int64_t>(random_.below(300))), nullptr,
                     [this, i] { startPs(i); });
  for (uint32_t i = 0; i < plan_.workers; ++i)
    scheduler_.after(milliseconds(300 + static_cast<int64_t>(random_.below(300))), nullptr,
                     [this, i, number = ranks_[i].started++] { startWorker(i, number); });
  for (const Fault& fault : plan_.faults)
    scheduler_.after(milliseconds(301) + fault.at, nullptr, [this, fault] { apply(fault); });
  const uint64_t too_long = scheduler_.after(kVirtualMax, nullptr, [this] {
    complain(fmt::format("the job has not ended after {:.0f} s", toSeconds(kVirtualMax)));
    over_->fulfill();
  });
  pair.promise.wait(wait_scope_);
  scheduler_.cancel(too_long);
  judge();
  judgeCheckpoints();
  report_.hash = scheduler_.hash();
  report_.applied = ledger_.applied();
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
