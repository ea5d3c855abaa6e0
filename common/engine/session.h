#pragma once

// Runs any part of a graph: what is fetched, from what is fed. The master of the graph engine.

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "common/engine/plan.h"
#include "common/engine/registered_part.h"
#include "common/engine/rendezvous.h"
#include "common/engine/tasks.h"
#include "common/graph/graph.h"
#include "common/tensor/tensor.h"

namespace dtf::engine {

struct SessionOptions {
  bool soft_placement = false;
  std::vector<std::pair<std::string, std::string>> colocations;  // see DevicePlacerOptions
  std::map<std::string, std::string, std::less<>> lines;         // likewise
  size_t plans_max = 64;  // kept, one per signature; of more the one unused longest is dropped
};

struct Feed {
  std::string tensor;  // "x", "layer/relu:0"
  const Tensor* value = nullptr;
};

// What a step tells of itself, besides what it computes. Value type.
struct RunMetadata {
  std::vector<trace::TaskTrace> traces;  // of each task that has a part in it
};

// What a session has done. Value type.
struct SessionCounts {
  uint64_t plans = 0;    // signatures that were compiled
  uint64_t steps = 0;    // that ended without an error
  uint64_t kernels = 0;  // run in these
};

// Owns: the placed graph, the plans, and its tasks. Borrows: devices and kernels, where the tasks
// are of this process.
// Threads: thread-safe. Steps of one plan run one at a time, others side by side.
// Blocks: run(), until the step has ended; the first of a signature while it is compiled.
// Errors: kBadConfig for names that aren't there (with the nearest), feeds that don't fit,
// placeholders that are needed and not fed, variables without a value, placement, ops that a
// session can't run; of a step that fails, the first error of any part. Once a task is lost,
// kUnavailable that says so: what it held is gone, so whoever goes on makes another session.
class Session {
 public:
  // The graph is placed as a whole, so where a node runs depends on no fetch.
  Session(const graph::Graph& graph, std::unique_ptr<Tasks> tasks, SessionOptions options = {});
  // On devices of this process, with variables of its own.
  Session(const graph::Graph& graph, const std::vector<SessionDevice>& devices,
          SessionOptions options = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // The values of `fetches`, in their order, of a step in which `targets` (nodes, by their
  // names, or an output's) have run, too. Only what they need runs; what is fed is not computed.
  // What is fed may be any tensor. `metadata`: filled when the step has ended well; null: the tasks
  // record nothing.
  std::vector<Tensor> run(std::span<const Feed> feeds, std::span<const std::string> fetches,
                          std::span<const std::string> targets = {},
                          RunMetadata* metadata = nullptr);

  // Has the steps under way fail with this cause, whoever waits for them; a kernel that computes
  // ends first. Those that begin later run.
  void abort(const Error& cause) { tasks_->abortSteps(cause); }

  // Gives a variable its value, from the next step on. It keeps it until it is given another, by
  // whoever shares it, or a step assigns it.
  void setVariable(std::string_view name, const Tensor& value);

  // As TensorFlow's Session.reset(): on all of its tasks the variables of this container, of other
  // sessions, too, have no value from now on, and leave their memory; its queues are empty and
  // open, and who waits for one is told so. Empty: what names no container.
  void reset(const std::string& container) { tasks_->reset(container); }

  SessionCounts counts() const;
  // What is on its way between devices and tasks: nothing but during a step.
  RendezvousLoad load() const { return tasks_->load(); }

 private:
  // A plan, made by its first step. A step runs with `running` held.
  struct Registered {
    Mutex running;
    Plan plan DTF_GUARDED_BY(running);  // but its parts, which are where they run
    std::unique_ptr<PlanParts> parts DTF_GUARDED_BY(running);  // null: not made yet, or it failed
  };
  struct Entry {
    Signature signature;
    std::shared_ptr<Registered>
        plan;  // shared with the steps that run it, which may outlast its place
  };

  std::shared_ptr<Registered> planOf(const Signature& signature);
  // Others may run, and be made, meanwhile.
  void make(Registered& registered, const Signature& signature) DTF_REQUIRES(registered.running);
  std::vector<Tensor> runPlan(Registered& registered, const Signature& signature,
                              std::span<const Feed> feeds, RunMetadata* metadata);

  const SessionOptions options_;
  const std::unique_ptr<Tasks> tasks_;
  const graph::Graph graph_;  // placed

  Mutex plans_mutex_;
  std::list<Entry> plans_ DTF_GUARDED_BY(plans_mutex_);  // the one used last comes first

  mutable Mutex counts_mutex_;
  SessionCounts counts_ DTF_GUARDED_BY(counts_mutex_);
  uint64_t next_step_ DTF_GUARDED_BY(counts_mutex_) = 1;
};

}  // namespace dtf::engine
