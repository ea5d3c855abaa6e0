#pragma once

// One client process of the simulated world: real sessions over the real links, driven by fibers.

#include <kj/async.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/engine/session.h"
#include "common/runtime/kernel.h"
#include "common/wire/session/session_calls.h"
#include "tests/session_sim/fiber_tasks.h"
#include "tests/session_sim/job_ledger.h"
#include "tests/session_sim/session_plan.h"
#include "tests/sim/sim_loop.h"

namespace dtf::sim {

// The events of one client, in all of its processes.
struct ClientTally {
  uint32_t processes = 0;
  uint32_t sessions = 0;
  uint32_t ended_well = 0;  // steps of the first plan
  uint32_t failed = 0;      // of all plans; by cause:
  uint32_t aborted = 0, late = 0, bad = 0, lost = 0;
};

// A stranger's knowledge of a session: everything it needs to send to it.
struct SessionTrace {
  wire::SessionToken token;
  uint64_t plan = 0;  // 0: none is registered
  uint32_t edge = 0;  // of the plan, from worker/0 to ps/0
  uint64_t bytes = 0;
  uint64_t ended_step = 0;  // the newest of the plan
  bool parked = false;      // a stranger left a tensor that no task will take
};

// Owns: the process's session, connections and fibers. Borrows: everything it is given.
// Threads: one. Made and destroyed from events of the world.
class SessionClientSim {
 public:
  struct Hooks {
    std::function<void(const std::string&)> log, complain;
    std::function<void(SessionClientSim&)>
        on_ended;  // it has done its steps; an event of the world
    // When a task was first killed, or a connection cut, not before `since`.
    std::function<std::optional<TimePoint>(TimePoint since)> first_loss;
  };

  SessionClientSim(const Environment& environment, const SessionPlan& plan,
                   const runtime::KernelTable& kernels, const kj::FiberPool& fibers, uint32_t index,
                   ClientTally& tally, Hooks hooks);
  ~SessionClientSim() noexcept(false);

  uint32_t index() const { return index_; }
  const ProcessRef& process() const { return process_; }
  // Null while it has no session.
  const std::shared_ptr<SessionTrace>& trace() const { return trace_; }

 private:
  class TracedTasks;
  struct Abort {
    TimePoint at;
    std::string text;
  };

  void work(kj::WaitScope& scope);
  std::optional<Error> runSession(kj::WaitScope& scope);
  void open(kj::WaitScope& scope);
  void runSteps(kj::WaitScope& scope);
  void runLookups(kj::WaitScope& scope);
  void runPuts(kj::WaitScope& scope);
  void runTakes(kj::WaitScope& scope);
  void train();
  // Runs a step of the plan, of which `well` have ended well; the first one compiles. Returns false
  // when it fails for an allowed reason; complains of any other.
  bool step(bool is_bad, uint32_t& well, const std::function<void()>& run);
  // When steps that had begun by then were aborted with `text`; nullopt: they weren't.
  std::optional<TimePoint> abortedAt(const std::string& text, TimePoint begun) const;
  void judge(const Error& error, TimePoint begun, bool is_bad);
  void judgeTime(TimePoint begun, bool is_compiled);
  void judgeValues(const std::vector<Tensor>& values, float x);
  void judgeLoad();
  void abortSoon();

  const Environment environment_;
  const SessionPlan& plan_;
  const runtime::KernelTable& kernels_;
  const kj::FiberPool& fibers_;
  const uint32_t index_;
  ClientTally& tally_;
  const Hooks hooks_;
  const ProcessRef process_;
  SimLoop loop_;
  std::shared_ptr<SessionTrace> trace_;
  // State of the session.
  uint32_t begun_ = 0, well_ = 0, looked_up_ = 0, failed_in_turn_ = 0;
  bool ending_ = false;
  JobLedger jobs_;
  uint32_t jobs_put_ = 0, jobs_taken_ = 0;  // by steps that ended well
  bool closing_ = false;                    // its queue is closed, or is about to be
  bool is_given_up_ = false;                // it cannot be closed
  std::vector<Abort> aborts_;
  std::unique_ptr<wire::SessionCalls> calls_;
  FiberTasks* tasks_ = nullptr;  // session_'s
  std::unique_ptr<engine::Session> session_;
  std::optional<kj::Promise<void>> lookups_, puts_, takes_;
  kj::Promise<void> work_ = nullptr;
};

}  // namespace dtf::sim
