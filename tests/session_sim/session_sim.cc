#include "tests/session_sim/session_sim.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/json.h"
#include "common/runtime/cpu_kernels.h"

namespace dtf::sim {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kVirtualMax = seconds(2000);
constexpr Duration kRest = seconds(60);  // until all state of the clients must be gone
constexpr size_t kProblemsMax = 5;

}  // namespace

SessionReport& SessionReport::operator+=(const SessionReport& other) {
  events += other.events;
  virtual_seconds += other.virtual_seconds;
  faults += other.faults;
  task_restarts += other.task_restarts;
  client_restarts += other.client_restarts;
  clients.processes += other.clients.processes;
  clients.sessions += other.clients.sessions;
  clients.ended_well += other.clients.ended_well;
  clients.failed += other.clients.failed;
  clients.aborted += other.clients.aborted;
  clients.late += other.clients.late;
  clients.bad += other.clients.bad;
  clients.lost += other.clients.lost;
  stranger.late += other.stranger.late;
  stranger.doubled += other.stranger.doubled;
  stranger.dead += other.stranger.dead;
  stranger.uninvited += other.stranger.uninvited;
  return *this;
}

std::string SessionReport::text() const {
  return fmt::format(
      "{} steps ended well, {} failed: {} aborted, {} late, {} bad; {} sessions, {} times one was "
      "lost; {} faults, {} tasks and {} clients killed; tensors refused: {} late, {} doubled, {} "
      "of dead processes, {} without the secret; {} events, {:.0f} virtual seconds",
      clients.ended_well, clients.failed, clients.aborted, clients.late, clients.bad,
      clients.sessions, clients.lost, faults, task_restarts, client_restarts, stranger.late,
      stranger.doubled, stranger.dead, stranger.uninvited, events, virtual_seconds);
}

SessionSim::SessionSim(SessionPlan plan, std::function<void(const std::string&)> print)
    : plan_(std::move(plan)),
      print_(std::move(print)),
      random_(plan_.seed, 102),
      network_(scheduler_, random_, plan_.network),
      tasks_(plan_.tasks()),
      clients_(plan_.clients) {
  runtime::registerCpuKernels(kernels_);
  for (uint32_t i = 0; i < plan_.devices; ++i)
    cpus_.push_back(std::make_unique<runtime::CpuDevice>(static_cast<int>(i)));
}

SessionSim::~SessionSim() noexcept(false) {
  stranger_ = nullptr;
  for (Client& client : clients_)
    if (client.process != nullptr) endClient(client, true);
  for (Task& task : tasks_) {
    if (task.process == nullptr) continue;
    task.process->process()->dead = true;
    task.process = nullptr;
  }
  pause(milliseconds(1));  // destroying the loops' leftovers needs kj's loop
}

void SessionSim::log(const std::string& line) {
  scheduler_.mix(line);
  if (print_)
    print_(fmt::format("{:12.6f} {}", toSeconds(scheduler_.now().time_since_epoch()) - 1, line));
}

void SessionSim::complain(const std::string& what) {
  log("PROBLEM " + what);
  if (report_.problems.size() < kProblemsMax) report_.problems.push_back(what);
}

void SessionSim::startTask(size_t index) {
  Task& task = tasks_[index];
  const TaskId id = tasksOf(plan_)[index];
  log(fmt::format("{} starts", id.name()));
  task.process =
      std::make_unique<ServedTaskSim>(environment_, plan_, cpus_, kernels_, id, task.started++);
}

void SessionSim::startClient(uint32_t index) {
  Client& client = clients_[index];
  client.process = std::make_unique<SessionClientSim>(
      environment_, plan_, kernels_, fibers_, index, client.tally,
      SessionClientSim::Hooks{[this](const std::string& line) { log(line); },
                              [this](const std::string& what) { complain(what); },
                              [this](SessionClientSim& ended) { onClientEnded(ended.index()); },
                              [this](TimePoint since) -> std::optional<TimePoint> {
                                const auto first =
                                    std::lower_bound(losses_.begin(), losses_.end(), since);
                                return first == losses_.end() ? std::nullopt
                                                              : std::optional(*first);
                              }});
}

// A client that ends by itself closes its connections after the bytes it has sent.
void SessionSim::endClient(Client& client, bool is_killed) {
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

void SessionSim::onClientEnded(uint32_t index) {
  log(fmt::format("client/{} has done its steps", index));
  endClient(clients_[index], false);
  const bool all_have = std::all_of(clients_.begin(), clients_.end(), [&](const Client& client) {
    return client.tally.ended_well >= plan_.steps;
  });
  if (!all_have) return;
  is_over_ = true;
  over_->fulfill();
}

void SessionSim::killTask(size_t index, Duration until_restart) {
  Task& task = tasks_[index];
  losses_.push_back(scheduler_.now());
  const ProcessRef process = task.process->process();
  process->dead = true;
  network_.killed(process);
  task.process = nullptr;
  ++report_.task_restarts;
  scheduler_.after(until_restart, nullptr, [this, index] { startTask(index); });
}

// Never earlier than the end of another freeze: new events would overtake the held ones.
void SessionSim::freeze(const ProcessRef& process, Duration length) {
  process->frozen_until = std::max(process->frozen_until, scheduler_.now() + length);
}

void SessionSim::apply(const SessionFault& fault) {
  using Kind = SessionFault::Kind;
  if (is_over_) return;
  const size_t task = fault.target % tasks_.size();
  const auto index = static_cast<uint32_t>(fault.target % clients_.size());
  const size_t connections = network_.connections();
  const bool is_of_task = fault.kind == Kind::kKillTask || fault.kind == Kind::kFreezeTask;
  const bool is_of_client = fault.kind == Kind::kKillClient || fault.kind == Kind::kFreezeClient;
  if (is_of_task && tasks_[task].process == nullptr) return;
  if (is_of_client && clients_[index].process == nullptr) return;
  if (!is_of_task && !is_of_client && connections == 0) return;
  ++report_.faults;
  log("FAULT " + fault.text());
  switch (fault.kind) {
    case Kind::kKillTask:
      return killTask(task, fault.length);
    case Kind::kKillClient:
      endClient(clients_[index], true);
      ++report_.client_restarts;
      scheduler_.after(fault.length, nullptr, [this, index] { startClient(index); });
      return;
    case Kind::kFreezeTask:
      return freeze(tasks_[task].process->process(), fault.length);
    case Kind::kFreezeClient:
      return freeze(clients_[index].process->process(), fault.length);
    case Kind::kCut:
      losses_.push_back(scheduler_.now());
      // Often the newest: its hello may be under way.
      return network_.cut(fault.target % 2 == 0 ? connections - 1 : fault.target / 2 % connections);
    case Kind::kSilence:
      return network_.silence(fault.target % connections, fault.length);
  }
}

void SessionSim::pause(Duration time) {
  auto passed = kj::newPromiseAndFulfiller<void>();
  scheduler_.after(time, nullptr, [&] { passed.fulfiller->fulfill(); });
  passed.promise.wait(wait_scope_);
}

// All clients have gone: the tasks hold variables and queues alone.
void SessionSim::judgeRest() {
  for (Task& task : tasks_) {
    if (task.process == nullptr) continue;
    serving::PartServer& server = task.process->server();
    const std::string name = task.process->task().name();
    if (server.sessions() > 0)
      complain(fmt::format("{} has {} sessions, though all clients have gone: {}", name,
                           server.sessions(), server.statusJson()));
    const Json status = Json::parse(server.statusJson());
    const auto variables = status.at("variable_bytes").asUint64();
    const auto queues = status.at("queue_bytes").asUint64();
    if (status.at("held_bytes") != variables + queues)
      complain(fmt::format("{} holds {} bytes, of which {} are variables and {} in queues", name,
                           status["held_bytes"].dump(), variables, queues));
  }
}

SessionReport SessionSim::run() {
  auto pair = kj::newPromiseAndFulfiller<void>();
  over_ = kj::mv(pair.fulfiller);
  const auto soon = [&] { return milliseconds(static_cast<int64_t>(random_.below(300))); };
  for (size_t i = 0; i < tasks_.size(); ++i)
    scheduler_.after(soon(), nullptr, [this, i] { startTask(i); });
  for (uint32_t i = 0; i < clients_.size(); ++i)
    scheduler_.after(soon(), nullptr, [this, i] { startClient(i); });
  for (const SessionFault& fault : plan_.faults)
    scheduler_.after(fault.at, nullptr, [this, &fault] { apply(fault); });
  if (plan_.stranger)
    stranger_ = std::make_unique<Stranger>(
        environment_, fibers_, report_.stranger,
        Stranger::Hooks{[this](const std::string& what) { complain(what); },
                        [this] {
                          const Client& client = clients_[random_.below(clients_.size())];
                          return client.process == nullptr ? nullptr : client.process->trace();
                        },
                        [this]() -> std::optional<Incarnation> {
                          const Task& worker = tasks_.at(plan_.ps_tasks);
                          if (worker.process == nullptr) return std::nullopt;
                          return worker.process->incarnation();
                        }});
  const uint64_t too_long = scheduler_.after(kVirtualMax, nullptr, [this] {
    complain(fmt::format("the clients have not done their steps after {:.0f} s",
                         toSeconds(kVirtualMax)));
    over_->fulfill();
  });
  pair.promise.wait(wait_scope_);
  scheduler_.cancel(too_long);
  stranger_ = nullptr;
  pause(kRest);
  if (is_over_) judgeRest();
  for (const Client& client : clients_) {
    SessionReport one;
    one.clients = client.tally;
    report_ += one;
  }
  report_.hash = scheduler_.hash();
  report_.events = scheduler_.eventsDone();
  report_.virtual_seconds = toSeconds(scheduler_.now().time_since_epoch()) - 1;
  return report_;
}

SessionReport runSessionSeed(uint64_t seed) {
  SessionSim sim(makeSessionPlan(seed), nullptr);
  return sim.run();
}

}  // namespace dtf::sim
