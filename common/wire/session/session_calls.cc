#include "common/wire/session/session_calls.h"

#include <fmt/format.h>
#include <kj/vector.h>

#include <algorithm>
#include <set>
#include <utility>

#include "common/base/check.h"
#include "common/cluster/address.h"
#include "common/net/error_bridge.h"
#include "common/wire/named_wait.h"

namespace dtf::wire {

namespace {

// Returns how the clusters differ that two tasks were started with; empty: they don't. A task that
// reports none has nothing to compare. The address of either task itself may be spelled as it
// listens, as 0.0.0.0, or have a port that the kernel chose, and the session has reached it; of the
// others only the ports are compared, since one host has several names.
std::string clusterDifference(const TaskLink& a, const TaskLink& b) {
  if (a.cluster().empty() || b.cluster().empty()) return {};
  for (const auto& [one, other] : {std::pair(&a, &b), {&b, &a}})
    for (const auto& [task, address] : one->cluster()) {
      if (task == one->task() || task == other->task()) continue;
      const auto at = other->cluster().find(task);
      const bool is_known = at != other->cluster().end();
      if (is_known && at->second.port == address.port) continue;
      return fmt::format(
          "{} and {} were started with different clusters: {} has {} at {}, {} has {}; start every "
          "program with the same addresses in the same order",
          one->peer(), other->peer(), one->task().name(), task.name(), address.str(),
          other->task().name(),
          is_known ? fmt::format("it at {}", at->second.str()) : fmt::format("no {}", task.name()));
    }
  return {};
}

// The kernel chose the port of such a task, and its cluster has no place to learn it from.
void refuseAutomatic(const TaskLink& reporting, TaskId wanted) {
  const auto at = reporting.automatic().find(wanted);
  if (at == reporting.automatic().end()) return;
  net::throwAsKj(Error(
      ErrorCode::kBadConfig,
      fmt::format("the graph names {0}, which has the address {1} in the cluster of {2}, and no "
                  "other task learns the port that the kernel chose: give {0} a port in the "
                  "cluster of every program",
                  wanted.name(), at->second.str(), reporting.task().name())));
}

}  // namespace

SessionCalls::SessionCalls(net::Loop& loop, std::vector<RemoteTarget> targets, SessionLimits limits)
    : loop_(loop), limits_(limits) {
  DTF_CHECK(!targets.empty());
  for (RemoteTarget& target : targets)
    links_.push_back(std::make_unique<TaskLink>(loop, std::move(target.address), target.task,
                                                limits_.chunk_bytes));
}

kj::Promise<void> SessionCalls::open(const SessionToken& token, std::set<TaskId> wanted) {
  DTF_CHECK(devices_.empty());
  kj::Vector<kj::Promise<void>> opened;
  for (const auto& link : links_) opened.add(link->open(token, limits_.connect_max));
  return joinAll(kj::mv(opened))
      .then([this, token, wanted = std::move(wanted)] { return openWanted(token, wanted); })
      .then([this] { takeDevices(); });
}

kj::Promise<void> SessionCalls::openWanted(const SessionToken& token, std::set<TaskId> wanted) {
  for (const auto& link : links_) wanted.erase(link->task());
  kj::Vector<kj::Promise<void>> opened;
  const std::map<TaskId, cluster::Address>& known = links_.front()->cluster();
  for (const TaskId task : wanted) {
    const auto at = known.find(task);
    refuseAutomatic(*links_.front(), task);
    if (at == known.end()) continue;  // placing the graph reports missing devices
    links_.push_back(std::make_unique<TaskLink>(loop_, at->second, task, limits_.chunk_bytes));
    opened.add(links_.back()->open(token, limits_.connect_max));
  }
  return joinAll(kj::mv(opened));
}

void SessionCalls::takeDevices() {
  std::set<TaskId> tasks;
  const auto reporting = std::find_if(links_.begin(), links_.end(),
                                      [](const auto& link) { return !link->cluster().empty(); });
  const TaskLink& first = reporting == links_.end() ? *links_.front() : **reporting;
  for (const auto& link : links_) {
    if (!tasks.insert(link->task()).second)
      net::throwAsKj(
          Error(ErrorCode::kBadConfig, link->task().name() + " is given as two targets"));
    if (const std::string difference = clusterDifference(first, *link); !difference.empty())
      net::throwAsKj(Error(ErrorCode::kBadConfig, difference));
    devices_.insert(devices_.end(), link->devices().begin(), link->devices().end());
  }
}

TaskLink& SessionCalls::linkTo(TaskId task) const {
  const auto link = std::find_if(links_.begin(), links_.end(),
                                 [&](const auto& each) { return each->task() == task; });
  DTF_CHECK_MSG(link != links_.end(), task.name());
  return **link;
}

kj::Promise<void> SessionCalls::registerPlan(uint64_t plan, std::vector<engine::TaskPart> parts) {
  const auto [known, is_new] = plans_.try_emplace(plan);
  DTF_CHECK(is_new);
  Processes processes;
  for (const auto& link : links_) processes[link->task()] = link->incarnation();
  kj::Vector<kj::Promise<void>> registered;
  for (engine::TaskPart& part : parts) {
    RemotePart& remote = known->second.emplace_back();
    remote.link = &linkTo(part.task);
    for (const graph::Output& fetch : part.fetches)
      remote.fetches.push_back(part.graph.spec(fetch));
  }
  for (engine::TaskPart& part : parts) {
    TaskLink& link = linkTo(part.task);
    registered.add(link.registerPart(plan,
                                     std::make_shared<const engine::TaskPart>(std::move(part)),
                                     processes, limits_.register_max));
  }
  return joinAll(kj::mv(registered));
}

void SessionCalls::releasePlan(uint64_t plan) {
  const auto known = plans_.find(plan);
  if (known == plans_.end()) return;
  for (const RemotePart& part : known->second) part.link->releasePart(plan);
  plans_.erase(known);
}

kj::Promise<engine::StepResult> SessionCalls::run(uint64_t plan, uint64_t step,
                                                  const engine::StepFeeds& feeds, bool is_traced) {
  return runRemoteStep(loop_.timer(), {.plan = plan, .step = step, .is_traced = is_traced},
                       plans_.at(plan), feeds, {limits_.step_max, limits_.abort_max}, aborts_);
}

// Iterates over a copy, since a step that fails at once leaves the list.
void SessionCalls::abortSteps(const Error& cause) {
  const StepAborts under_way = aborts_;
  for (const auto& [step, abort] : under_way)
    if (aborts_.contains(step)) abort(cause);
}

kj::Promise<void> SessionCalls::setVariable(const graph::Node& variable, const Tensor& value) {
  const auto task = graph::DeviceName::parse(variable.device).taskId();
  DTF_CHECK_MSG(task.has_value(), variable.device);
  return linkTo(*task).setVariable(engine::ResourceKey::of(variable), value, limits_.step_max);
}

kj::Promise<void> SessionCalls::reset(const std::string& container) {
  kj::Vector<kj::Promise<void>> done;
  for (const auto& link : links_) done.add(link->reset(container, limits_.connect_max));
  return joinAll(kj::mv(done));
}

kj::Promise<engine::RendezvousLoad> SessionCalls::load() {
  const auto sum = std::make_shared<engine::RendezvousLoad>();
  kj::Vector<kj::Promise<void>> told;
  for (const auto& link : links_)
    told.add(link->load(limits_.connect_max).then([sum](engine::RendezvousLoad load) {
      sum->steps += load.steps;
      sum->parked += load.parked;
      sum->owned_bytes += load.owned_bytes;
      sum->waiting += load.waiting;
    }));
  return joinAll(kj::mv(told)).then([sum] { return *sum; });
}

}  // namespace dtf::wire
