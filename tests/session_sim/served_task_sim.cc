#include "tests/session_sim/served_task_sim.h"

#include <fmt/format.h>

#include <deque>
#include <utility>

#include "common/graph/device_name.h"

namespace dtf::sim {

namespace {

// Jobs in their order, each a while after the one before.
class SimQueue final : public engine::DeviceQueue {
 public:
  SimQueue(const Environment& environment, ProcessRef process, const SessionPlan& plan)
      : environment_(environment), process_(std::move(process)), plan_(plan) {}
  ~SimQueue() override {
    if (event_) environment_.scheduler.cancel(*event_);
    while (!jobs_.empty()) runFirst();
  }

  void post(Job job) override {
    jobs_.push_back(std::move(job));
    if (!event_) schedule();
  }

 private:
  void schedule() {
    event_ = environment_.scheduler.after(duration(), process_, [this] {
      runFirst();
      event_.reset();
      if (!jobs_.empty()) schedule();
    });
  }

  void runFirst() {
    const Job job = std::move(jobs_.front());
    jobs_.pop_front();
    runHere(job);
  }

  Duration duration() {
    Random& random = environment_.random;
    const bool is_slow = plan_.slow_share > 0 && random.uniform() < plan_.slow_share;
    const Duration most = is_slow ? plan_.slow_max : std::chrono::microseconds(500);
    return Duration(static_cast<int64_t>(random.below(static_cast<uint64_t>(most.count()) + 1)));
  }

  const Environment environment_;
  const ProcessRef process_;
  const SessionPlan& plan_;
  std::deque<Job> jobs_;
  std::optional<uint64_t> event_;
};

serving::PartServerOptions optionsOf(const Environment& environment, const ProcessRef& process,
                                     const SessionPlan& plan, TaskId task,
                                     Incarnation incarnation) {
  serving::PartServerOptions options{.self = task, .incarnation = incarnation};
  for (const TaskId each : tasksOf(plan))
    (each.job == JobKind::kPs ? options.ps : options.workers).push_back(addressOf(each));
  options.make_queue = [&environment, process, &plan](const std::string&) {
    return std::make_unique<SimQueue>(environment, process, plan);
  };
  return options;
}

}  // namespace

std::vector<TaskId> tasksOf(const SessionPlan& plan) {
  std::vector<TaskId> tasks;
  for (uint32_t i = 0; i < plan.ps_tasks; ++i) tasks.push_back({JobKind::kPs, i});
  for (uint32_t i = 0; i < plan.workers; ++i) tasks.push_back({JobKind::kWorker, i});
  return tasks;
}

Incarnation incarnationOf(TimePoint now, uint32_t number) {
  using Ticks = std::chrono::duration<uint64_t, std::ratio<1, 256>>;
  const auto ticks = std::chrono::duration_cast<Ticks>(now.time_since_epoch()).count();
  return Incarnation::of(0, ticks, static_cast<uint8_t>(number));
}

cluster::Address addressOf(TaskId task) {
  return {fmt::format("{}{}", jobName(task.job), task.index), 1};
}

ServedTaskSim::ServedTaskSim(const Environment& environment, const SessionPlan& plan,
                             const Cpus& cpus, const runtime::KernelTable& kernels, TaskId task,
                             uint32_t number)
    : task_(task),
      incarnation_(incarnationOf(environment.scheduler.now(), number)),
      process_(std::make_shared<Process>(fmt::format("{}.{}", task.name(), number))),
      loop_(environment, process_) {
  std::vector<engine::SessionDevice> devices;
  for (uint32_t i = 0; i < cpus.size(); ++i)
    devices.push_back({graph::fullDevice(task, "CPU", i), cpus[i].get(), &kernels});
  server_ = std::make_unique<serving::PartServer>(
      optionsOf(environment, process_, plan, task, incarnation_), loop_, devices);
  environment.network.listen(
      addressOf(task).str(), process_,
      [this](Network::Stream stream, net::ConnectionKind, const std::string& peer) {
        server_->serve(net::wrapStream(kj::mv(stream)), peer);
      });
}

ServedTaskSim::~ServedTaskSim() noexcept(false) {}

}  // namespace dtf::sim
