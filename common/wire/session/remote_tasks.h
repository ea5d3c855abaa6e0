#pragma once

// The tasks of a session as other processes: `psd --serve` and `workerd --serve`.

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/base/mutex.h"
#include "common/engine/tasks.h"
#include "common/net/reactor.h"
#include "common/runtime/cpu_device.h"
#include "common/runtime/kernel.h"
#include "common/wire/session/session_calls.h"

namespace dtf::wire {

struct RemoteTasksOptions {
  std::vector<std::string> targets;  // of different tasks; see parseTarget()
  std::set<TaskId> wanted{};         // besides: the first target says where they are
  net::Credentials credentials{};
  SessionLimits limits{};
};

// "dtf://localhost:2222", or "dtf://localhost:2222/ps/0" to talk to that task and no other: with
// keys its certificate must say so, without, what listens there. Errors: kUsage that says what is
// wrong.
RemoteTarget parseTarget(std::string_view target);

// Those that nodes of the graph ask for by name, as far as their devices can be read.
std::set<TaskId> tasksNamedIn(const graph::Graph& graph);

// Opens a session on all targets, and on what is wanted besides, and ends it with its own end. The
// first target's first device is where a node goes that asks for nothing.
// Owns: connections, the thread of their loop, a CPU that folds constants.
// Threads: thread-safe, as Tasks is; it outlives its plans.
// Blocks: the constructor, until all targets have answered; the rest as Tasks says.
// Errors: the constructor: kUnavailable that names a target that can't be reached, or doesn't
// serve; kBadConfig for a task that two targets are; kPermission for one that is another than the
// target says.
class RemoteTasks final : public engine::Tasks {
 public:
  explicit RemoteTasks(RemoteTasksOptions options);
  ~RemoteTasks() override;

  const std::vector<graph::DeviceName>& devices() const override { return calls_->devices(); }
  bool canRun(const graph::Node& node, const graph::DeviceName& device) const override;
  bool withCpu(const UseCpu& use) override;
  std::unique_ptr<engine::PlanParts> registerPlan(std::vector<engine::TaskPart> parts) override;
  void setVariable(const graph::Node& variable, const Tensor& value) override;
  void abortSteps(const Error& cause) override;
  void reset(const std::string& container) override;
  engine::RendezvousLoad load() const override;

 private:
  class Plan;

  runtime::KernelTable kernels_;
  Mutex cpu_mutex_;
  runtime::CpuDevice cpu_ DTF_GUARDED_BY(cpu_mutex_);
  Mutex plans_mutex_;
  uint64_t next_plan_ DTF_GUARDED_BY(plans_mutex_) = 1;
  std::unique_ptr<SessionCalls> calls_;  // used and destroyed on the loop
  mutable net::IoThread loop_;           // last: it ends before what lives on it
};

}  // namespace dtf::wire
