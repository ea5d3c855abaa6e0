#pragma once

// The tasks of a session as other processes: `psd --serve` and `workerd --serve`.

#include <atomic>
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
  std::set<TaskId> wanted{};         // more tasks; the first target has their addresses
  net::Credentials credentials{};
  SessionLimits limits{};
  // Another thread sets it to give up the opening, which may still take a second. It may be null.
  std::shared_ptr<const std::atomic<bool>> gives_up{};
};

// Parses "dtf://localhost:2222", or "dtf://localhost:2222/ps/0", which accepts only that task: with
// keys its certificate must name it, otherwise its reply to the hello.
// Errors: kUsage with the reason.
RemoteTarget parseTarget(std::string_view target);

// Returns the tasks that nodes of the graph name in their devices; skips malformed device names.
std::set<TaskId> tasksNamedIn(const graph::Graph& graph);

// A session on all targets and on the other wanted tasks, from construction to destruction. Nodes
// without a device go to the first device of the first target.
// Owns: the connections, the thread of their loop, a CPU for folding constants.
// Threads: thread-safe, like Tasks; it outlives its plans.
// Blocks: the constructor, until all targets have replied; the rest as Tasks.
// Errors: the constructor: kUnavailable with a target that can't be reached, or doesn't serve, and
// for an opening that was given up;
// kBadConfig if two targets are the same task, or tasks were started with different clusters;
// kPermission if a target is another task than it names.
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
  mutable net::IoThread loop_;           // last: it ends before its users
};

}  // namespace dtf::wire
