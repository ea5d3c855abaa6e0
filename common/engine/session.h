#pragma once

// Runs any part of a graph: fetches from feeds. The master of the graph engine.

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
  std::map<std::string, std::string, std::less<>> lines;         // see DevicePlacerOptions
  // kept plans, one per signature; beyond that the least recently used one is dropped
  size_t plans_max = 64;
};

struct Feed {
  std::string tensor;  // "x", "layer/relu:0"
  const Tensor* value = nullptr;
};

// Information about a step besides its results. Value type.
struct RunMetadata {
  std::vector<trace::TaskTrace> traces;  // of each task with a part in it
};

// Counts of a session's run(). Value type.
struct SessionCounts {
  uint64_t plans = 0;    // compiled signatures
  uint64_t steps = 0;    // steps without an error
  uint64_t kernels = 0;  // run in these
};

// Owns: the placed graph, the plans, and its tasks. Borrows: devices and kernels, if the tasks are
// in this process.
// Threads: thread-safe. Steps of one plan run one at a time, others concurrently.
// Blocks: run(), until the step has ended; the first step of a signature also while it is compiled.
// Errors: kBadConfig for unknown names (with the nearest), feeds that don't fit, placeholders that
// are needed and not fed, variables without a value, placement, ops that a session can't run; for a
// failed step, the first error of any part. kUnavailable once a task is lost: its state is gone, so
// the caller must make another session.
class Session {
 public:
  // Places the whole graph, so the device of a node doesn't depend on fetches.
  Session(const graph::Graph& graph, std::unique_ptr<Tasks> tasks, SessionOptions options = {});
  // On devices of this process, with its own variables.
  Session(const graph::Graph& graph, const std::vector<SessionDevice>& devices,
          SessionOptions options = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Returns the values of `fetches`, in order, of a step that also runs `targets` (nodes by name,
  // or by an output's name). Only needed nodes run; fed tensors are not computed. Any tensor may be
  // fed. `metadata`: filled after a successful step; null: the tasks record nothing.
  std::vector<Tensor> run(std::span<const Feed> feeds, std::span<const std::string> fetches,
                          std::span<const std::string> targets = {},
                          RunMetadata* metadata = nullptr);

  // Fails the running steps with this cause, in all threads; a running kernel ends first. Later
  // steps are unaffected.
  void abort(const Error& cause) { tasks_->abortSteps(cause); }

  // Sets the value of a variable from the next step on. It stays until a step, or another session
  // that shares it, assigns a new one.
  void setVariable(std::string_view name, const Tensor& value);

  // Gives every variable of the graph its initial value, by its initializer, on its task; replaces
  // values that are there. The values follow from the seed and the variable's place alone, as in a
  // job with this seed.
  void initialize(uint64_t seed);

  // Returns the names of the graph's variables that have no value, in the order of the graph.
  std::vector<std::string> uninitialized();

  // Like TensorFlow's Session.reset(): on all of its tasks, drops the values of this container's
  // variables, also for other sessions; empties and reopens its queues, and operations that wait
  // for one fail. Empty: resources without a container.
  void reset(const std::string& container) { tasks_->reset(container); }

  // Returns the graph as placed.
  const graph::Graph& graph() const { return graph_; }

  SessionCounts counts() const;
  // Returns the tensors in transit between devices and tasks: none except during a step.
  RendezvousLoad load() const { return tasks_->load(); }

 private:
  // A plan, made by its first step. A step runs with `running` held.
  struct Registered {
    Mutex running;
    Plan plan DTF_GUARDED_BY(running);  // without its parts, which are registered
    std::unique_ptr<PlanParts> parts DTF_GUARDED_BY(running);  // null: not made yet, or it failed
    bool is_of_user = true;                                    // counted in SessionCounts
  };
  struct Entry {
    Signature signature;
    std::shared_ptr<Registered> plan;  // shared with running steps, which may outlast the entry
  };

  std::shared_ptr<Registered> planOf(const Signature& signature);
  // Other plans may run, and be made, meanwhile.
  void make(Registered& registered, const Signature& signature) DTF_REQUIRES(registered.running);
  std::vector<Tensor> runOnce(const graph::Graph& graph, const Signature& signature,
                              std::span<const Feed> feeds);
  std::vector<Tensor> runPlan(Registered& registered, const Signature& signature,
                              std::span<const Feed> feeds, RunMetadata* metadata);

  const SessionOptions options_;
  const std::unique_ptr<Tasks> tasks_;
  const graph::Graph graph_;  // placed

  Mutex plans_mutex_;
  std::list<Entry> plans_ DTF_GUARDED_BY(plans_mutex_);  // most recently used first

  mutable Mutex counts_mutex_;
  SessionCounts counts_ DTF_GUARDED_BY(counts_mutex_);
  uint64_t next_step_ DTF_GUARDED_BY(counts_mutex_) = 1;
};

}  // namespace dtf::engine
