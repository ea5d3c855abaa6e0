#include "common/wire/remote_tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/cluster/address.h"
#include "common/engine/local_tasks.h"
#include "common/net/error_bridge.h"
#include "common/net/timer.h"
#include "common/runtime/cpu_kernels.h"
#include "common/wire/named_wait.h"
#include "common/wire/remote_step.h"
#include "common/wire/task_link.h"

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
      if (wrong.empty() && !parsed.task) wrong = "what follows the port is no task";
    }
  }
  if (!wrong.empty())
    throw Error(ErrorCode::kUsage,
                fmt::format("'{}' is no target: {}; a target is dtf://host:port, "
                            "or dtf://host:port/worker/1",
                            target, wrong));
  return parsed;
}

// A plan of remote parts.
class RemoteTasks::Plan final : public engine::PlanParts {
 public:
  Plan(RemoteTasks& tasks, uint64_t number) : tasks_(tasks), number_(number) {}
  ~Plan() override {
    for (const RemotePart& part : parts_) {
      tasks_.loop_.post([link = part.link, number = number_] { link->releasePart(number); });
    }
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  // As far as they have been registered they are released with this.
  void registerParts(std::vector<engine::TaskPart> parts) {
    Processes processes;
    for (const auto& link : tasks_.links_) processes[link->task()] = link->incarnation();
    std::vector<std::shared_ptr<const engine::TaskPart>> shared;
    for (engine::TaskPart& part : parts) {
      parts_.push_back({&tasks_.linkTo(part.task), {}});
      for (const graph::Output& fetch : part.fetches)
        parts_.back().fetches.push_back(part.graph.spec(fetch));
      shared.push_back(std::make_shared<const engine::TaskPart>(std::move(part)));
    }
    tasks_.loop_.call([&] {
      kj::Vector<kj::Promise<void>> registered;
      for (size_t i = 0; i < shared.size(); ++i)
        registered.add(parts_[i].link->registerPart(number_, shared[i], processes,
                                                    tasks_.options_.register_max));
      return joinAll(kj::mv(registered));
    });
  }

  engine::StepResult run(uint64_t step, const engine::StepFeeds& feeds) override {
    DTF_CHECK(feeds.size() == parts_.size());
    return tasks_.loop_.call([&] {
      return runRemoteStep(tasks_.loop_.timer(), {.plan = number_, .step = step}, parts_, feeds,
                           {tasks_.options_.step_max, tasks_.options_.abort_max}, tasks_.aborts_);
    });
  }

 private:
  RemoteTasks& tasks_;
  const uint64_t number_;
  std::vector<RemotePart> parts_;
};

RemoteTasks::RemoteTasks(RemoteTasksOptions options)
    : options_(std::move(options)), loop_("dtf-session") {
  if (options_.targets.empty()) throw Error(ErrorCode::kUsage, "a session needs a target");
  runtime::registerCpuKernels(kernels_);
  loop_.onStop([this] { links_.clear(); });
  const std::set<std::string> each(options_.targets.begin(), options_.targets.end());
  if (each.size() < options_.targets.size())
    throw Error(ErrorCode::kBadConfig, "one task is given as two targets: name each once");
  for (const std::string& target : options_.targets) {
    RemoteTarget parsed = parseTarget(target);
    links_.push_back(
        std::make_unique<TaskLink>(loop_, std::move(parsed.address), parsed.task, options_.keys));
  }
  const SessionToken token = SessionToken::draw();
  loop_.call([&] {
    kj::Vector<kj::Promise<void>> opened;
    for (const auto& link : links_) opened.add(link->open(token, options_.connect_max));
    return joinAll(kj::mv(opened));
  });
  std::set<TaskId> tasks;
  for (const auto& link : links_) {
    if (!tasks.insert(link->task()).second)
      throw Error(ErrorCode::kBadConfig, link->task().name() + " is given as two targets");
    devices_.insert(devices_.end(), link->devices().begin(), link->devices().end());
  }
}

RemoteTasks::~RemoteTasks() = default;

TaskLink& RemoteTasks::linkTo(TaskId task) const {
  const auto link = std::find_if(links_.begin(), links_.end(),
                                 [&](const auto& each) { return each->task() == task; });
  DTF_CHECK_MSG(link != links_.end(), task.name());
  return **link;
}

// They have this program's kernels for their processors; should one not, it refuses the part.
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
  plan->registerParts(std::move(parts));
  return plan;
}

void RemoteTasks::setVariable(const graph::Node& variable, const Tensor& value) {
  const auto task = graph::DeviceName::parse(variable.device).taskId();
  DTF_CHECK_MSG(task.has_value(), variable.device);
  const auto key = engine::VariableKey::of(variable);
  loop_.call([&] { return linkTo(*task).setVariable(key, value, options_.step_max); });
}

// A step that fails at once leaves the list.
void RemoteTasks::abortSteps(const Error& cause) {
  loop_.call([&]() -> kj::Promise<void> {
    const auto under_way = aborts_;
    for (const auto& [step, abort] : under_way)
      if (aborts_.contains(step)) abort(cause);
    return kj::READY_NOW;
  });
}

void RemoteTasks::resetVariables(const std::string& container) {
  loop_.call([&] {
    kj::Vector<kj::Promise<void>> reset;
    for (const auto& link : links_)
      reset.add(link->resetVariables(container, options_.connect_max));
    return joinAll(kj::mv(reset));
  });
}

engine::RendezvousLoad RemoteTasks::load() const {
  engine::RendezvousLoad sum;
  for (const auto& link : links_) {
    const engine::RendezvousLoad load =
        loop_.call([&] { return link->load(options_.connect_max); });
    sum.steps += load.steps;
    sum.parked += load.parked;
    sum.owned_bytes += load.owned_bytes;
    sum.waiting += load.waiting;
  }
  return sum;
}

}  // namespace dtf::wire
