#include "tests/session_sim/replica_client_sim.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/wire/session/session_calls.h"
#include "tests/session_sim/fiber_tasks.h"
#include "tests/session_sim/served_task_sim.h"
#include "tests/support/simulated_disk.h"

namespace dtf::sim {

namespace {

// The supervisor's session and the connections below it.
struct Opened {
  std::unique_ptr<wire::SessionCalls> calls;
  std::unique_ptr<engine::Session> session;
};

}  // namespace

ReplicaClientSim::ReplicaClientSim(const Environment& environment, const ReplicasPlan& plan,
                                   const runtime::KernelTable& kernels, const kj::FiberPool& fibers,
                                   uint32_t rank, ReplicaTally& tally, Hooks hooks)
    : environment_(environment),
      plan_(plan),
      kernels_(kernels),
      rank_(rank),
      tally_(tally),
      hooks_(std::move(hooks)),
      incarnation_(incarnationOf(environment.scheduler.now(), tally.processes)),
      process_(std::make_shared<Process>(fmt::format("replica/{}.{}", rank, tally.processes++))),
      loop_(environment, process_) {
  work_ = fibers
              .startFiber([this](kj::WaitScope& scope) {
                const End end = work(scope);
                environment_.scheduler.after({}, process_,
                                             [this, end] { hooks_.on_ended(*this, end); });
              })
              .eagerlyEvaluate(nullptr);
}

ReplicaClientSim::~ReplicaClientSim() noexcept(false) {
  work_ = nullptr;
}

ReplicaClientSim::End ReplicaClientSim::work(kj::WaitScope& scope) {
  try {
    train(scope);
    return {};
  } catch (const Error& error) {
    return {error, false};
  } catch (const testing::SimulatedCrash&) {
    return {std::nullopt, true};
  }
}

void ReplicaClientSim::wait(kj::WaitScope& scope, TimePoint until) {
  const Duration left = until - environment_.scheduler.now();
  if (left > Duration{0}) loop_.timer().afterDelay(left.count() * kj::NANOSECONDS).wait(scope);
}

train::GraphSupervisorOptions ReplicaClientSim::options(kj::WaitScope& scope) {
  train::GraphSupervisorOptions options;
  options.is_chief = rank_ == 0;
  options.task = process_->name;
  options.chief = "replica/0";
  options.log_dir = kReplicasRun;
  options.save_every = plan_.save_every;
  options.summarize_every = std::nullopt;  // their writer has a thread
  options.wait_max = plan_.wait_max;
  options.poll_every = plan_.poll_every;
  options.saver.max_to_keep = 0;
  options.saver.incarnation = incarnation_;
  options.clock = &environment_.scheduler;
  options.wait_until = [this, &scope](TimePoint until) { wait(scope, until); };
  options.saver.pauses_replicas = false;  // the pause has a thread
  options.saver.clock = options.clock;
  options.saver.wait_until = options.wait_until;
  return options;
}

std::shared_ptr<engine::Session> ReplicaClientSim::open(const graph::Graph& graph,
                                                        kj::WaitScope& scope) {
  const uint32_t number = tally_.sessions++;
  std::vector<wire::RemoteTarget> targets;
  for (const TaskId task : tasksOf(plan_.world)) targets.push_back({addressOf(task), task});
  std::swap(targets.front(), targets.back());  // the first computes
  auto opened = std::make_shared<Opened>();
  opened->calls = std::make_unique<wire::SessionCalls>(
      loop_, std::move(targets),
      wire::SessionLimits{.step_max = plan_.world.step_max, .abort_max = plan_.world.abort_max});
  auto tasks = std::make_unique<FiberTasks>(*opened->calls, kernels_);
  tasks->runsIn(scope);
  tasks->await(
      opened->calls->open({.number = 1 + environment_.random.below(uint64_t{1} << 62),
                           .secret = {1 + environment_.random.below(uint64_t{1} << 62), number}}));
  opened->session = std::make_unique<engine::Session>(graph, std::move(tasks));
  return {opened, opened->session.get()};
}

void ReplicaClientSim::train(kj::WaitScope& scope) {
  const ReplicaGraph replica = replicaGraph(plan_, rank_);
  train::GraphSupervisor supervisor(environment_.disk, options(scope));
  supervisor.prepare(
      replica.graph, [this, &scope](const graph::Graph& graph) { return open(graph, scope); },
      false);
  const int64_t step = trainTo(supervisor, replica, scope);
  hooks_.log(fmt::format("{} is at step {}, and stops", process_->name, step));
  supervisor.stop();
}

// The chief ends the run. Until then the others stay: it may have to go back.
int64_t ReplicaClientSim::trainTo(train::GraphSupervisor& supervisor, const ReplicaGraph& replica,
                                  kj::WaitScope& scope) {
  int64_t step = supervisor.globalStep();
  hooks_.log(fmt::format("{} begins at step {}", process_->name, step));
  while (!supervisor.shouldStop() && (rank_ != 0 || step < int64_t{plan_.world.steps})) {
    // Backups may go on without a chief: not for thousands of steps.
    if (step > int64_t{plan_.world.steps})
      wait(scope, environment_.scheduler.now() + std::chrono::milliseconds(50));
    const auto next = takeStep(supervisor, replica, step);
    if (next) {
      step = *next;
      continue;
    }
    ++tally_.recovered;
    step = supervisor.globalStep();
    hooks_.log(fmt::format("{} goes on from step {}", process_->name, step));
  }
  return step;
}

std::optional<int64_t> ReplicaClientSim::takeStep(train::GraphSupervisor& supervisor,
                                                  const ReplicaGraph& replica, int64_t step) {
  std::vector<Tensor> factors;
  std::vector<engine::Feed> feeds;
  factors.reserve(replica.names.size());
  for (size_t i = 0; i < replica.names.size(); ++i) {
    factors.push_back(factorOf(plan_, step, rank_, i));
    feeds.push_back({fmt::format("g{}", i), &factors.back()});
  }
  const std::vector<std::string> fetches = {replica.train, replica.accepted};
  const auto values = supervisor.run(feeds, fetches, {});
  if (!values) return std::nullopt;
  const int64_t next = values->at(0).as<int64_t>()[0];
  ++tally_.steps;
  if (values->at(1).as<int64_t>()[0] == 0) ++tally_.dropped;
  // With backups the others go on without a chief that died at its end; the next one goes back.
  if (plan_.hasAllRanks() && next < step)
    hooks_.complain(
        fmt::format("{} went from step {} to {} without a recovery", process_->name, step, next));
  return next;
}

}  // namespace dtf::sim
