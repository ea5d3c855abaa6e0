#include "tests/session_sim/replicas_sim.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/checkpoint/checkpoint_folder.h"
#include "common/checkpoint/restore.h"
#include "common/runtime/cpu_kernels.h"

namespace dtf::sim {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Without a fault the training goes on, and ends: the longest waits are for a frozen task, for the
// chief of a next run, and for one that never comes (ReplicasPlan::wait_max).
constexpr Duration kQuietMax = seconds(150);
constexpr Duration kWatchEvery = seconds(10);
constexpr Duration kRestOfReplicas = seconds(60);
constexpr uint32_t kFailuresMax = 30;  // of the program, of one client
constexpr size_t kBrokenMax = 5;

}  // namespace

ReplicasReport& ReplicasReport::operator+=(const ReplicasReport& other) {
  events += other.events;
  virtual_seconds += other.virtual_seconds;
  faults += other.faults;
  task_kills += other.task_kills;
  client_kills += other.client_kills;
  disk_crashes += other.disk_crashes;
  freezes += other.freezes;
  programs_failed += other.programs_failed;
  left_alone += other.left_alone;
  checkpoints += other.checkpoints;
  clients.processes += other.clients.processes;
  clients.sessions += other.clients.sessions;
  clients.steps += other.clients.steps;
  clients.dropped += other.clients.dropped;
  clients.recovered += other.clients.recovered;
  return *this;
}

std::string ReplicasReport::text() const {
  return fmt::format(
      "{} steps of replicas, {} of them without their gradient, {} times a session was opened "
      "anew; "
      "{} faults: {} tasks and {} clients killed, {} chiefs within a checkpoint, {} frozen; {} "
      "programs failed, {} left alone; {} checkpoints compared; {} events, {:.0f} virtual seconds",
      clients.steps, clients.dropped, clients.recovered, faults, task_kills, client_kills,
      disk_crashes, freezes, programs_failed, left_alone, checkpoints, events, virtual_seconds);
}

ReplicasSim::ReplicasSim(ReplicasPlan plan, std::function<void(const std::string&)> print)
    : plan_(std::move(plan)),
      print_(std::move(print)),
      random_(plan_.world.seed, 104),
      network_(scheduler_, random_, plan_.world.network),
      tasks_(plan_.world.tasks()),
      clients_(plan_.world.clients) {
  disk_.makeFolder(kReplicasRun);
  runtime::registerCpuKernels(kernels_);
  cpus_.push_back(std::make_unique<runtime::CpuDevice>(0));
}

ReplicasSim::~ReplicasSim() noexcept(false) {
  for (Client& client : clients_)
    if (client.process != nullptr) endClient(client, true);
  for (Task& task : tasks_) {
    if (task.process == nullptr) continue;
    task.process->process()->dead = true;
    task.process = nullptr;
  }
  pause(milliseconds(1));  // destroying the loops' leftovers needs kj's loop
}

void ReplicasSim::log(const std::string& line) {
  scheduler_.mix(line);
  if (print_)
    print_(fmt::format("{:12.6f} {}", toSeconds(scheduler_.now().time_since_epoch()) - 1, line));
}

void ReplicasSim::complain(const std::string& what) {
  log("PROBLEM " + what);
  if (report_.problems.size() < kBrokenMax) report_.problems.push_back(what);
}

void ReplicasSim::startTask(size_t index) {
  Task& task = tasks_[index];
  const TaskId id = tasksOf(plan_.world)[index];
  log(fmt::format("{} starts", id.name()));
  task.process = std::make_unique<ServedTaskSim>(environment_, plan_.world, cpus_, kernels_, id,
                                                 task.started++);
}

void ReplicasSim::startClient(uint32_t rank) {
  Client& client = clients_[rank];
  log(fmt::format("replica/{} starts", rank));
  client.process = std::make_unique<ReplicaClientSim>(
      environment_, plan_, kernels_, fibers_, rank, client.tally,
      ReplicaClientSim::Hooks{[this](const std::string& line) { log(line); },
                              [this](const std::string& what) { complain(what); },
                              [this](ReplicaClientSim& ended, const ReplicaClientSim::End& end) {
                                onClientEnded(ended.rank(), end);
                              }});
}

// A client that ends by itself closes its connections after the bytes it has sent.
void ReplicasSim::endClient(Client& client, bool is_killed) {
  const ProcessRef process = client.process->process();
  if (is_killed) {
    process->dead = true;
    network_.killed(process);
  }
  client.process = nullptr;
  if (!is_killed) {
    network_.killed(process);
    process->dead = true;
  }
}

void ReplicasSim::startAgain(uint32_t rank, Duration later) {
  quiet_since_ = std::max(quiet_since_, scheduler_.now() + later);
  scheduler_.after(later, nullptr, [this, rank] { startClient(rank); });
}

void ReplicasSim::noteEnd(uint32_t rank) {
  clients_[rank].has_ended = true;
  const bool all_have = std::all_of(clients_.begin(), clients_.end(),
                                    [](const Client& client) { return client.has_ended; });
  if (!all_have) return;
  is_over_ = true;
  over_->fulfill();
}

void ReplicasSim::onClientEnded(uint32_t rank, const ReplicaClientSim::End& end) {
  endClient(clients_[rank], end.has_crashed);
  if (end.has_crashed) {
    log(fmt::format("replica/{} died within a checkpoint", rank));
    ++report_.disk_crashes;
    disk_.heal();
    disk_.restart();
    return startAgain(rank, milliseconds(static_cast<int64_t>(50 + random_.below(1000))));
  }
  if (end.failed) return onProgramFailed(rank, *end.failed);
  log(fmt::format("replica/{} has ended", rank));
  noteEnd(rank);
}

// A program may end with the loss of a task, or a deadline. Whoever runs it starts it again.
void ReplicasSim::onProgramFailed(uint32_t rank, const Error& error) {
  Client& client = clients_[rank];
  log(fmt::format("replica/{} fails: {}", rank, error.message()));
  const bool is_late = error.code() == ErrorCode::kDeadline;
  const bool may_fail =
      !plan_.faults.empty() && (is_late || error.code() == ErrorCode::kUnavailable ||
                                (error.code() == ErrorCode::kOutOfRange && rank != 0));
  if (!may_fail)
    complain(fmt::format("replica/{} ends with {}: {}", rank, errorCodeName(error.code()),
                         error.message()));
  ++report_.programs_failed;
  // Nobody initialises the model of a ps that was lost after the chief has left.
  if (is_late && rank != 0 && clients_[0].has_ended) {
    ++report_.left_alone;
    return noteEnd(rank);
  }
  if (++client.failed > kFailuresMax)
    return complain(fmt::format("replica/{} has failed {} times", rank, client.failed));
  startAgain(rank, milliseconds(static_cast<int64_t>(50 + random_.below(1000))));
}

void ReplicasSim::killTask(size_t index, Duration until_restart) {
  Task& task = tasks_[index];
  const ProcessRef process = task.process->process();
  process->dead = true;
  network_.killed(process);
  task.process = nullptr;
  ++report_.task_kills;
  scheduler_.after(until_restart, nullptr, [this, index] { startTask(index); });
}

// A fault with a message comes when all that follows from its arrival has happened in its process,
// and before anything else.
void ReplicasSim::plant(const ReplicasFault& fault) {
  if (fault.message > 0)
    network_.onMessage(fault.message, [this, &fault] { apply(fault); });
  else
    scheduler_.after(fault.fault.at, nullptr, [this, &fault] { apply(fault); });
}

void ReplicasSim::apply(const ReplicasFault& fault) {
  if (is_over_) return;
  if (fault.disk_operations == 0) return applyTo(fault.fault);
  if (clients_[0].process == nullptr) return;
  ++report_.faults;
  log("FAULT " + fault.text());
  disk_.crashAt(disk_.operations().size() + fault.disk_operations - 1);
}

void ReplicasSim::applyTo(const SessionFault& fault) {
  using Kind = SessionFault::Kind;
  const size_t task = fault.target % tasks_.size();
  const auto rank = static_cast<uint32_t>(fault.target % clients_.size());
  const size_t connections = network_.connections();
  const bool is_of_task = fault.kind == Kind::kKillTask || fault.kind == Kind::kFreezeTask;
  const bool is_of_client = fault.kind == Kind::kKillClient || fault.kind == Kind::kFreezeClient;
  if (is_of_task && tasks_[task].process == nullptr) return;
  if (is_of_client && clients_[rank].process == nullptr) return;
  if (!is_of_task && !is_of_client && connections == 0) return;
  ++report_.faults;
  log("FAULT " + fault.text());
  quiet_since_ = std::max(quiet_since_, scheduler_.now() + fault.length);
  const auto freeze = [&](const ProcessRef& process) {
    ++report_.freezes;
    process->frozen_until = std::max(process->frozen_until, scheduler_.now() + fault.length);
  };
  switch (fault.kind) {
    case Kind::kKillTask:
      return killTask(task, fault.length);
    case Kind::kKillClient:
      ++report_.client_kills;
      endClient(clients_[rank], true);
      return startAgain(rank, fault.length);
    case Kind::kFreezeTask:
      return freeze(tasks_[task].process->process());
    case Kind::kFreezeClient:
      return freeze(clients_[rank].process->process());
    case Kind::kCut:
      return network_.cut(fault.target % connections);
    case Kind::kSilence:
      return network_.silence(fault.target % connections, fault.length);
  }
}

void ReplicasSim::watch() {
  if (is_over_) return;
  if (scheduler_.now() - quiet_since_ > kQuietMax) {
    complain(fmt::format("the training has not ended {:.0f} s after the last fault",
                         toSeconds(kQuietMax)));
    return over_->fulfill();
  }
  scheduler_.after(kWatchEvery, nullptr, [this] { watch(); });
}

// An update that some ps applied and others not, one that was applied twice, or with a stale
// gradient: each changes the bytes from then on.
void ReplicasSim::judgeCheckpoints() {
  UndisturbedValues undisturbed(plan_);
  disk_.heal();
  train::GraphSaver saver(disk_, {});
  const std::filesystem::path folder = std::filesystem::path(kReplicasRun) / "checkpoints";
  checkpoint::CheckpointFolder checkpoints(disk_, folder, Incarnation::of(0, 1, 1));
  const std::vector<uint64_t> steps = checkpoints.steps();
  const std::vector<std::string> names = replicaGraph(plan_, 0).names;
  for (const uint64_t step : steps) {
    const checkpoint::Latest::Found found = saver.find(checkpoints.stepFolder(step));
    for (size_t i = 0; i < names.size(); ++i) {
      Tensor value(DType::kFloat32, Shape{plan_.world.elements});
      const checkpoint::WantedPart wanted{names[i], 0, value.as<float>().size(),
                                          value.as<float>().data()};
      checkpoint::readParts(disk_, found.folder, found.manifest, {&wanted, 1});
      const std::vector<float>& right = undisturbed.after(static_cast<int64_t>(step), i);
      if (!std::equal(right.begin(), right.end(), value.as<float>().begin()))
        complain(fmt::format("'{}' is {:g} .. after {} steps, where {:g} .. is right", names[i],
                             value.as<float>()[0], step, right[0]));
    }
    for (const auto& [name, count] : train::countersIn(found.manifest))
      if (std::cmp_not_equal(count, step))
        complain(fmt::format("the checkpoint of step {} has '{}' of {}", step, name, count));
    ++report_.checkpoints;
  }
  const bool is_whole = !steps.empty() && (plan_.hasAllRanks() ? steps.back() == plan_.world.steps
                                                               : steps.back() >= plan_.world.steps);
  if (!is_whole)
    complain(fmt::format("the last checkpoint is of step {}, where {} is right",
                         steps.empty() ? -1 : static_cast<int64_t>(steps.back()),
                         plan_.world.steps));
}

void ReplicasSim::pause(Duration time) {
  auto passed = kj::newPromiseAndFulfiller<void>();
  scheduler_.after(time, nullptr, [&] { passed.fulfiller->fulfill(); });
  passed.promise.wait(wait_scope_);
}

ReplicasReport ReplicasSim::run() {
  auto pair = kj::newPromiseAndFulfiller<void>();
  over_ = kj::mv(pair.fulfiller);
  quiet_since_ = scheduler_.now();
  const auto soon = [&] { return milliseconds(static_cast<int64_t>(random_.below(300))); };
  for (size_t i = 0; i < tasks_.size(); ++i)
    scheduler_.after(soon(), nullptr, [this, i] { startTask(i); });
  for (uint32_t i = 0; i < clients_.size(); ++i)
    scheduler_.after(soon(), nullptr, [this, i] { startClient(i); });
  for (const ReplicasFault& fault : plan_.faults) plant(fault);
  watch();
  pair.promise.wait(wait_scope_);
  pause(kRestOfReplicas);
  if (is_over_) judgeCheckpoints();
  for (const Client& client : clients_) {
    ReplicasReport one;
    one.clients = client.tally;
    report_ += one;
  }
  report_.hash = scheduler_.hash();
  report_.events = scheduler_.eventsDone();
  report_.virtual_seconds = toSeconds(scheduler_.now().time_since_epoch()) - 1;
  return report_;
}

ReplicasReport runReplicasSeed(uint64_t seed) {
  ReplicasSim sim(makeReplicasPlan(seed), nullptr);
  return sim.run();
}

}  // namespace dtf::sim
