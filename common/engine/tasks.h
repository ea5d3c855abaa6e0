#pragma once

// The tasks of a session, as its master sees them: in this process (local_tasks.h) or in others.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/step_trace.h"
#include "common/engine/rendezvous.h"
#include "common/engine/task_part.h"
#include "common/graph/device_name.h"
#include "common/graph/graph.h"
#include "common/runtime/device.h"
#include "common/runtime/kernel.h"
#include "common/tensor/tensor.h"

namespace dtf::engine {

// What a step gives. Value type.
struct StepResult {
  std::vector<std::vector<Tensor>> fetches;  // by part, as TaskPart::fetches
  uint64_t kernels = 0;                      // that it took
  std::vector<trace::TaskTrace> traces{};    // by part, where they were asked for
};

// What a step feeds: by part, as TaskPart::feeds; their types and shapes have been checked.
using StepFeeds = std::vector<std::vector<const Tensor*>>;

// The parts of one plan, registered where they run, until this is destroyed.
// Threads: one step at a time.
// Blocks: run(), until the step has ended everywhere.
// Errors: run(): the root cause, the first error of any part; kUnavailable that names a task that
// was lost; kDeadline that names those that are late.
class PlanParts {
 public:
  virtual ~PlanParts() = default;
  // `step` has never been used in this session. `is_traced`: what each task did is wanted, too.
  virtual StepResult run(uint64_t step, const StepFeeds& feeds, bool is_traced) = 0;
};

// Threads: thread-safe.
// Blocks: registerPlan() while the parts are compiled; setVariable() and reset() until it is
// so.
// Errors: registerPlan(): kBadConfig, naming the node, for what a task can't run; both: kBadConfig
// for a variable that another session made with another type or shape. All: kUnavailable that names
// a task that was lost.
class Tasks {
 public:
  virtual ~Tasks() = default;

  // All devices of all tasks; the first is where a node goes that asks for nothing.
  virtual const std::vector<graph::DeviceName>& devices() const = 0;
  virtual bool canRun(const graph::Node& node, const graph::DeviceName& device) const = 0;

  // Calls `use` with a CPU that computes in this thread while nothing else does; false: there is
  // none.
  using UseCpu = std::function<void(runtime::Device&, const runtime::KernelTable&)>;
  virtual bool withCpu(const UseCpu& use) = 0;

  // `parts`: of different tasks, at least one.
  virtual std::unique_ptr<PlanParts> registerPlan(std::vector<TaskPart> parts) = 0;

  // Steps that begin from now on read `value`, which fits `variable`.
  virtual void setVariable(const graph::Node& variable, const Tensor& value) = 0;

  // Ends the steps under way: `cause` is their root cause, as far as they have no other. A kernel
  // isn't interrupted.
  virtual void abortSteps(const Error& cause) = 0;

  // The variables of this container have no value from now on, whoever made them, and its queues
  // are empty and open.
  virtual void reset(const std::string& container) = 0;

  // What is on its way between devices and tasks: nothing but during a step.
  virtual RendezvousLoad load() const = 0;
};

}  // namespace dtf::engine
