#include "common/wire/session/remote_tasks.h"

#include <fmt/format.h>

#include <charconv>
#include <set>
#include <utility>

#include "common/base/error.h"
#include "common/cluster/address.h"
#include "common/engine/local_tasks.h"
#include "common/net/error_bridge.h"
#include "common/net/timer.h"
#include "common/runtime/cpu_kernels.h"

namespace dtf::wire {

namespace {

// "worker/1"
std::optional<TaskId> taskNamed(std::string_view name) {
  const size_t slash = name.find('/');
  const std::optional<JobKind> job = parseJobName(name.substr(0, slash));
  if (!job || slash == std::string_view::npos) return std::nullopt;
  const std::string_view number = name.substr(slash + 1);
  TaskId task{*job, 0};
  std::from_chars(number.data(), number.data() + number.size(), task.index);
  return task.name() == name ? std::optional(task) : std::nullopt;
}

// A session on tasks that serve is open within this time: a request to stop lets it open.
constexpr Duration kGiveUpAfter = std::chrono::seconds(1);
constexpr Duration kGiveUpPoll = std::chrono::milliseconds(50);

// Fails once the opening was given up, `pause` from now at the earliest. Borrows both.
kj::Promise<void> whenGivenUp(net::Loop& loop, const RemoteTasksOptions& options, Duration pause) {
  return loop.timer().afterDelay(net::toKj(pause)).then([&loop, &options]() -> kj::Promise<void> {
    if (!*options.gives_up) return whenGivenUp(loop, options, kGiveUpPoll);
    std::string tasks = options.targets.front();
    for (const TaskId task : options.wanted) tasks += ", " + task.name();
    net::throwAsKj(
        Error(ErrorCode::kUnavailable, fmt::format("not all of these tasks reply yet: {}", tasks)));
  });
}

}  // namespace

RemoteTarget parseTarget(std::string_view target) {
  constexpr std::string_view kScheme = "dtf://";
  RemoteTarget parsed;
  std::string wrong = "it doesn't begin with dtf://";
  if (target.starts_with(kScheme)) {
    const std::string_view rest = target.substr(kScheme.size());
    const size_t slash = rest.find('/');
    wrong = cluster::parseAddress(rest.substr(0, slash), parsed.address);
    if (wrong.empty() && parsed.address.port == 0) wrong = "it has no port";
    if (slash != std::string_view::npos) {
      parsed.task = taskNamed(rest.substr(slash + 1));
      if (wrong.empty() && !parsed.task) wrong = "the text after the port is not a task";
    }
  }
  if (!wrong.empty())
    throw Error(ErrorCode::kUsage,
                fmt::format("'{}' is not a target: {}; a target is dtf://host:port, "
                            "or dtf://host:port/worker/1",
                            target, wrong));
  return parsed;
}

std::set<TaskId> tasksNamedIn(const graph::Graph& graph) {
  std::set<TaskId> tasks;
  for (const graph::Node& node : graph.nodes()) {
    try {
      if (const auto task = graph::DeviceName::parse(node.device).taskId()) tasks.insert(*task);
    } catch (const Error&) {
      // The session reports the node when it places the graph.
    }
  }
  return tasks;
}

// A plan of remote parts.
class RemoteTasks::Plan final : public engine::PlanParts {
 public:
  Plan(RemoteTasks& tasks, uint64_t number) : tasks_(tasks), number_(number) {}
  ~Plan() override {
    tasks_.loop_.post([&calls = *tasks_.calls_, number = number_] { calls.releasePlan(number); });
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  engine::StepResult run(uint64_t step, const engine::StepFeeds& feeds, bool is_traced) override {
    return tasks_.loop_.call([&] { return tasks_.calls_->run(number_, step, feeds, is_traced); });
  }

 private:
  RemoteTasks& tasks_;
  const uint64_t number_;
};

RemoteTasks::RemoteTasks(RemoteTasksOptions options)
    : loop_("dtf-session", {}, options.credentials) {
  if (options.targets.empty()) throw Error(ErrorCode::kUsage, "a session needs a target");
  runtime::registerCpuKernels(kernels_);
  loop_.onStop([this] { calls_ = nullptr; });
  const std::set<std::string> each(options.targets.begin(), options.targets.end());
  if (each.size() < options.targets.size())
    throw Error(ErrorCode::kBadConfig, "one task is given as two targets: name each once");
  std::vector<RemoteTarget> targets;
  for (const std::string& target : options.targets) targets.push_back(parseTarget(target));
  calls_ = std::make_unique<SessionCalls>(loop_, std::move(targets), options.limits);
  loop_.call([&]() -> kj::Promise<void> {
    auto opened = calls_->open(SessionToken::draw(), options.wanted);
    if (options.gives_up == nullptr) return opened;
    return opened.exclusiveJoin(whenGivenUp(loop_, options, kGiveUpAfter));
  });
}

RemoteTasks::~RemoteTasks() = default;

// Assumes that the tasks have this program's kernels for the CPU. A task without one rejects the
// part.
bool RemoteTasks::canRun(const graph::Node& node, const graph::DeviceName& device) const {
  return engine::needsNoKernel(node) || device.type != "CPU" ||
         kernels_.has(node.op, runtime::DeviceType::kCpu);
}

bool RemoteTasks::withCpu(const UseCpu& use) {
  MutexLock lock(cpu_mutex_);
  use(cpu_, kernels_);
  return true;
}

std::unique_ptr<engine::PlanParts> RemoteTasks::registerPlan(std::vector<engine::TaskPart> parts) {
  uint64_t number = 0;
  {
    MutexLock lock(plans_mutex_);
    number = next_plan_++;
  }
  auto plan = std::make_unique<Plan>(*this, number);
  loop_.call([&] { return calls_->registerPlan(number, std::move(parts)); });
  return plan;
}

void RemoteTasks::setVariable(const graph::Node& variable, const Tensor& value) {
  loop_.call([&] { return calls_->setVariable(variable, value); });
}

void RemoteTasks::abortSteps(const Error& cause) {
  loop_.call([&] { calls_->abortSteps(cause); });
}

void RemoteTasks::reset(const std::string& container) {
  loop_.call([&] { return calls_->reset(container); });
}

engine::RendezvousLoad RemoteTasks::load() const {
  return loop_.call([&] { return calls_->load(); });
}

}  // namespace dtf::wire
