#pragma once

// One serving task of the simulated world: the real PartServer on a simulated loop, with devices
// whose programs take virtual time.

#include <memory>
#include <string>
#include <vector>

#include "common/engine/device_queue.h"
#include "common/runtime/cpu_device.h"
#include "common/runtime/kernel.h"
#include "common/serving/part_server.h"
#include "tests/session_sim/session_plan.h"
#include "tests/sim/sim_loop.h"

namespace dtf::sim {

// The tasks of the plan in order: the ps, then the workers.
std::vector<TaskId> tasksOf(const SessionPlan& plan);
cluster::Address addressOf(TaskId task);
// Returns the incarnation of a process that starts now, after `number` others of its task.
Incarnation incarnationOf(TimePoint now, uint32_t number);

// Owns: the server. Borrows: its arguments.
// Threads: one. Made and destroyed from events of the world.
class ServedTaskSim {
 public:
  using Cpus = std::vector<std::unique_ptr<runtime::CpuDevice>>;  // as many as the plan says
  // `cpus` must outlive the world's events: those of a killed process may hold its compiled
  // programs. `number`: how many processes of the task there were before.
  ServedTaskSim(const Environment& environment, const SessionPlan& plan, const Cpus& cpus,
                const runtime::KernelTable& kernels, TaskId task, uint32_t number);
  ~ServedTaskSim() noexcept(false);

  TaskId task() const { return task_; }
  Incarnation incarnation() const { return incarnation_; }
  const ProcessRef& process() const { return process_; }
  serving::PartServer& server() { return *server_; }

 private:
  const TaskId task_;
  const Incarnation incarnation_;
  const ProcessRef process_;
  SimLoop loop_;
  std::unique_ptr<serving::PartServer> server_;
};

}  // namespace dtf::sim
