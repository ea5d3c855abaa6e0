#pragma once

// The tasks of a session, as seen by its master: in this process (local_tasks.h) or in others.

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

// The results of a step. Value type.
struct StepResult {
  std::vector<std::vector<Tensor>> fetches;  // by part, parallel to TaskPart::fetches
  uint64_t kernels = 0;                      // run in the step
  std::vector<trace::TaskTrace> traces{};    // by part, if requested
};

// The feeds of a step: by part, parallel to TaskPart::feeds; types and shapes have been checked.
using StepFeeds = std::vector<std::vector<const Tensor*>>;

// The parts of one plan, registered with their tasks until this is destroyed.
// Threads: one step at a time.
// Blocks: run(), until the step has ended everywhere.
// Errors: run(): the root cause, the first error of any part; kUnavailable with a task that was
// lost; kDeadline with the late tasks.
class PlanParts {
 public:
  virtual ~PlanParts() = default;
  // `step` was never used in this session. `is_traced`: the tasks also record traces.
  virtual StepResult run(uint64_t step, const StepFeeds& feeds, bool is_traced) = 0;
};

// Threads: thread-safe.
// Blocks: registerPlan() while the parts are compiled; setVariable() and reset() until they are
// done.
// Errors: registerPlan(): kBadConfig with the node for an op that a task can't run; it and
// setVariable(): kBadConfig for a variable that another session made with another type or shape.
// All: kUnavailable with a task that was lost.
class Tasks {
 public:
  virtual ~Tasks() = default;

  // Returns all devices of all tasks; nodes without a constraint run on the first.
  virtual const std::vector<graph::DeviceName>& devices() const = 0;
  virtual bool canRun(const graph::Node& node, const graph::DeviceName& device) const = 0;

  // Calls `use` with a CPU that computes in this thread while nothing else does; returns false if
  // there is none.
  using UseCpu = std::function<void(runtime::Device&, const runtime::KernelTable&)>;
  virtual bool withCpu(const UseCpu& use) = 0;

  // `parts`: of different tasks, at least one.
  virtual std::unique_ptr<PlanParts> registerPlan(std::vector<TaskPart> parts) = 0;

  // Steps from now on read `value`, which fits `variable`.
  virtual void setVariable(const graph::Node& variable, const Tensor& value) = 0;

  // Ends the running steps: `cause` is their root cause, unless they already have one. A kernel
  // isn't interrupted.
  virtual void abortSteps(const Error& cause) = 0;

  // Drops the values of this container's variables, whichever session made them; empties and
  // reopens its queues.
  virtual void reset(const std::string& container) = 0;

  // Returns the tensors in transit between devices and tasks: none except during a step.
  virtual RendezvousLoad load() const = 0;
};

}  // namespace dtf::engine
