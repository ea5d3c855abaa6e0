#pragma once

// What a session asks of tasks in other processes, as promises on a loop. RemoteTasks waits for
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

// A task that serves, where it listens; with `task` no other may answer there.
struct RemoteTarget {
  cluster::Address address;
  std::optional<TaskId> task;
};

struct SessionLimits {
  Duration connect_max = std::chrono::seconds(10);    // until a target has answered the hello
  Duration register_max = std::chrono::seconds(120);  // until a part is compiled
  Duration step_max = std::chrono::seconds(600);      // a step, and a variable's value to be taken
  Duration abort_max = std::chrono::seconds(5);  // for a failed step to end: more than a second
  uint64_t chunk_bytes = kChunkBytesMax;  // of a blob of a tensor that is sent, see arena_codec.h
};

// Owns: a connection to each target, and what it knows of the plans. Borrows: `loop`.
// Threads: loop-thread only; devices() and linkTo() from any once it is open.
// Blocks: never.
// Errors: by promise, as dtf::Error inside: those of engine::Tasks and RemoteTasks.
class SessionCalls {
 public:
  SessionCalls(net::Loop& loop, std::vector<RemoteTarget> targets, SessionLimits limits);
  SessionCalls(const SessionCalls&) = delete;
  SessionCalls& operator=(const SessionCalls&) = delete;

  // Once. Of the tasks in `wanted` those that no target is are opened, too, where the first target
  // says that they are. kBadConfig for a task that two targets are.
  kj::Promise<void> open(const SessionToken& token, std::set<TaskId> wanted = {});
  // Of all tasks, in the order of the targets; then of those that were wanted besides.
  const std::vector<graph::DeviceName>& devices() const { return devices_; }

  // As far as they have been registered they are there until the plan is released. `plan`: never
  // used before.
  kj::Promise<void> registerPlan(uint64_t plan, std::vector<engine::TaskPart> parts);
  void releasePlan(uint64_t plan);  // no step of it is under way
  // `feeds` must stay until the promise is resolved; see runRemoteStep().
  kj::Promise<engine::StepResult> run(uint64_t plan, uint64_t step, const engine::StepFeeds& feeds,
                                      bool is_traced = false);
  // The steps under way fail with this cause, as far as they have no other.
  void abortSteps(const Error& cause);

  kj::Promise<void> setVariable(const graph::Node& variable, const Tensor& value);
  kj::Promise<void> reset(const std::string& container);
  // Of all tasks together.
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
