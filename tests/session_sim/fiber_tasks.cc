#include "tests/session_sim/fiber_tasks.h"

#include <utility>

#include "common/engine/local_tasks.h"

namespace dtf::sim {

class FiberTasks::Plan final : public engine::PlanParts {
 public:
  Plan(FiberTasks& tasks, uint64_t number) : tasks_(tasks), number_(number) {}
  ~Plan() override { tasks_.calls_.releasePlan(number_); }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  // A failed step may still run on a task that its client has given up.
  engine::StepResult run(uint64_t step, const engine::StepFeeds& feeds, bool is_traced) override {
    engine::StepResult result = tasks_.await(tasks_.calls_.run(number_, step, feeds, is_traced));
    tasks_.ended(number_, step);
    return result;
  }

 private:
  FiberTasks& tasks_;
  const uint64_t number_;
};

bool FiberTasks::canRun(const graph::Node& node, const graph::DeviceName&) const {
  return engine::needsNoKernel(node) || kernels_.has(node.op, runtime::DeviceType::kCpu);
}

bool FiberTasks::withCpu(const UseCpu& use) {
  use(cpu_, kernels_);
  return true;
}

std::unique_ptr<engine::PlanParts> FiberTasks::registerPlan(std::vector<engine::TaskPart> parts) {
  auto plan = std::make_unique<Plan>(*this, next_plan_);
  registering(next_plan_, parts);
  await(calls_.registerPlan(next_plan_++, std::move(parts)));
  return plan;
}

}  // namespace dtf::sim
