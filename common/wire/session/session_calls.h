#pragma once

// The calls of a session to tasks in other processes, as promises on a loop. RemoteTasks waits for
// them; the simulator runs them on virtual time.

#include <kj/async.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/cluster/spec.h"
#include "common/engine/tasks.h"
#include "common/engine/variable_store.h"
#include "common/net/loop.h"
#include "common/wire/session/remote_step.h"
#include "common/wire/session/session_token.h"
#include "common/wire/session/task_link.h"

namespace dtf::wire {

// The address of a task that serves. If `task` is set, no other task may answer there.
struct RemoteTarget {
  cluster::Address address;
  std::optional<TaskId> task;
};

struct SessionLimits {
  Duration connect_max = std::chrono::seconds(10);    // until a target has answered the hello
  Duration register_max = std::chrono::seconds(120);  // until a part is compiled
  Duration step_max = std::chrono::seconds(600);      // a step, or setting a variable
  Duration abort_max = std::chrono::seconds(5);  // for a failed step to end: more than a second
  uint64_t chunk_bytes = kChunkBytesMax;  // of a blob of a tensor that is sent, see arena_codec.h
};

// The client's side of a session.
// Owns: a connection to each target, and the registered parts of each plan.
// Borrows: `loop` (must outlive this).
// Threads: loop-thread only; devices() and linkTo() from any thread once it is open.
// Blocks: never.
// Errors: by promise, with a dtf::Error inside: as engine::Tasks and RemoteTasks.
class SessionCalls {
 public:
  SessionCalls(net::Loop& loop, std::vector<RemoteTarget> targets, SessionLimits limits);
  SessionCalls(const SessionCalls&) = delete;
  SessionCalls& operator=(const SessionCalls&) = delete;

  // To be called once. Connects to the targets, then to the other tasks in `wanted`, at the
  // addresses that the first target reports.
  // Errors: kBadConfig if two targets are the same task.
  kj::Promise<void> open(const SessionToken& token, std::set<TaskId> wanted = {});
  // Returns the devices of all tasks: of the targets in their order, then of the other tasks.
  const std::vector<graph::DeviceName>& devices() const { return devices_; }

  // Registers the parts with their tasks. Even after an error some may be registered, until
  // releasePlan(). `plan`: never used before.
  kj::Promise<void> registerPlan(uint64_t plan, std::vector<engine::TaskPart> parts);
  void releasePlan(uint64_t plan);  // no step of it is under way
  // Borrows `feeds` until the promise is resolved; see runRemoteStep().
  kj::Promise<engine::StepResult> run(uint64_t plan, uint64_t step, const engine::StepFeeds& feeds,
                                      bool is_traced = false);
  // Aborts the steps under way. They fail with `cause`, unless they have another one already.
  void abortSteps(const Error& cause);

  kj::Promise<void> setVariable(const graph::Node& variable, const Tensor& value);
  kj::Promise<void> reset(const std::string& container);
  // Returns the sum over all tasks.
  kj::Promise<engine::RendezvousLoad> load();

 private:
  TaskLink& linkTo(TaskId task) const;
  kj::Promise<void> openWanted(const SessionToken& token, std::set<TaskId> wanted);
  void takeDevices();

  net::Loop& loop_;
  const SessionLimits limits_;
  std::vector<graph::DeviceName> devices_;
  StepAborts aborts_;
  std::map<uint64_t, std::vector<RemotePart>> plans_;
  std::vector<std::unique_ptr<TaskLink>> links_;  // as devices(); last: they end before the others
};

}  // namespace dtf::wire
