#pragma once

// TensorFlow's Supervisor for sessions on tasks that serve: initialises or restores, waits, saves,
// writes summaries, and opens the session anew when a task was lost.

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/base/file_system.h"
#include "common/base/mutex.h"
#include "common/engine/session.h"
#include "common/summary/event_writer.h"
#include "common/train/graph_saver.h"
#include "common/train/replica_steps.h"
#include "common/train/run_mark.h"
#include "common/train/stop_request.h"

namespace dtf::train {

struct GraphSupervisorOptions {
  bool is_chief = true;
  std::string task = "worker/0";   // of this client, for messages
  std::string chief = "worker/0";  // likewise
  std::filesystem::path log_dir{};
  uint64_t seed = 0;
  std::optional<Duration> save_every = std::chrono::seconds(600);       // none: only at the end
  std::optional<Duration> summarize_every = std::chrono::seconds(120);  // none: only summarise()
  Duration wait_max = std::chrono::seconds(600);
  Duration poll_every = std::chrono::seconds(1);
  std::vector<std::string> summaries{};  // float32 scalars
  bool has_events = false;               // an event file also if summarize_every is none
  GraphSaverOptions saver{};
  // A simulation has another clock, and waits without blocking the thread. Null: the system's.
  const Clock* clock = nullptr;
  std::function<void(TimePoint until)> wait_until{};
};

// The chief restores the newest checkpoint of log_dir/checkpoints, or initialises, then marks the
// model as ready; others wait for the mark. A chief that finds the mark of its own log_dir, and a
// value of each variable, goes on with them: it was started again, or only a worker was lost. It
// restores if a step of synchronous replicas stays half taken, which nothing else mends. Its
// stop() marks the run as finished and ends the waits of synchronous replicas: the others then have
// a stop requested, also by prepare().
//
// Owns: the session; while it waits or ends the run, also a small session for the mark; the event
// file.
// Borrows: `file_system`.
// Threads: one at a time; requestStop(), shouldStop() and abortStep() from any.
// Blocks: on the tasks, on the disk, and while it waits, at most wait_max.
// Errors: kDeadline with the missing event; as engine::Session and GraphSaver. A checkpoint that
// can't be written on time is a warning: the next one may be; stop() and save() throw.
class GraphSupervisor {
 public:
  // It is called again after a loss. Shared with the caller, who may own more than the session.
  using Open = RunMark::Open;

  GraphSupervisor(FileSystem& file_system, GraphSupervisorOptions options);
  ~GraphSupervisor();

  // `is_local`: the session is of this process alone, so there is nobody to tell.
  void prepare(const graph::Graph& graph, Open open, bool is_local);

  // Returns nullopt if a task was lost, or has no variables: the session is another one then, and
  // the global step may be an earlier one. Also when abortStep() ended the step, and when the
  // chief has ended the run, which requests a stop. After a stop request a loss is an error.
  // `metadata`: see engine::Session::run().
  std::optional<std::vector<Tensor>> run(std::span<const engine::Feed> feeds,
                                         std::span<const std::string> fetches,
                                         std::span<const std::string> targets,
                                         engine::RunMetadata* metadata = nullptr);
  // Writes the summaries among the fetched values of the last step now. The chief's alone, with an
  // event file.
  void summarise(std::span<const std::string> fetches, const std::vector<Tensor>& values);
  int64_t globalStep();
  void save();
  // save(), whose failure is a warning: the next checkpoint may succeed.
  void saveOnTime();
  void stop();

  void requestStop() { stop_.ask(); }  // also ends a wait for other tasks
  bool shouldStop() const { return stop_.isSet(); }
  // Is true from a requestStop() on while prepare() or run() waits for tasks, and only then: stop()
  // waits for them. For Open, which then stops waiting.
  std::shared_ptr<const std::atomic<bool>> givesUp() const { return stop_.givesUp(); }
  // Aborts a running step. Returns false, and aborts nothing, while a checkpoint is saved or stop()
  // ends the run: try again later.
  bool abortStep(const std::string& why);

 private:
  using Values = std::vector<Tensor>;
  using Outcome = std::variant<Values, Error>;

  // The last checkpoint and summary.
  struct Last {
    TimePoint saved_at{}, summarised_at{};
    int64_t saved_step = -1, summarised_step = -1;
  };

  // While one exists, abortStep() aborts nothing.
  // Borrows: the supervisor. Threads: the one that saves. Blocks: never.
  class Saving {
   public:
    explicit Saving(GraphSupervisor& supervisor);
    ~Saving();
    Saving(const Saving&) = delete;
    Saving& operator=(const Saving&) = delete;

   private:
    GraphSupervisor& supervisor_;
  };

  // Ends the small session for the mark with its scope: a client has one session while it trains.
  // Borrows: the supervisor. Threads: one. Blocks: the destructor, on the session's end.
  class MarkUse {
   public:
    explicit MarkUse(GraphSupervisor& supervisor) : supervisor_(supervisor) {}
    ~MarkUse() { supervisor_.mark_.close(); }
    MarkUse(const MarkUse&) = delete;
    MarkUse& operator=(const MarkUse&) = delete;

   private:
    GraphSupervisor& supervisor_;
  };

  std::filesystem::path checkpoints() const { return options_.log_dir / "checkpoints"; }
  const Clock& clock() const;
  void recover();
  void openSession();
  bool tryReady(std::string& missing, Duration waited);
  bool isFinished(const Error& error);
  std::optional<bool> tryFinished();
  void noteFinished();
  void initialiseModel();
  void setMark(int64_t value);
  int64_t readMark();
  bool isLost(const Error& error);
  [[noreturn]] void giveUp(const std::string& missing) const;
  void pause(TimePoint until);
  void pauseAfterLosses();
  Outcome tryRun(std::span<const engine::Feed> feeds, std::span<const std::string> fetches,
                 std::span<const std::string> targets, engine::RunMetadata* metadata);
  Outcome tryGlobalStep();
  static int64_t stepIn(const Outcome& outcome);
  void noteLoss(const Error& error);
  void afterStep(std::span<const std::string> fetches, const Values& values);
  std::shared_ptr<engine::Session> session() const;

  FileSystem& file_system_;
  const GraphSupervisorOptions options_;
  GraphSaver saver_;
  RunMark mark_;
  std::optional<graph::Graph> graph_;
  Open open_;
  bool is_local_ = false;
  bool was_ready_ = false;                        // prepare() has returned
  std::unique_ptr<summary::EventWriter> events_;  // of the chief
  Last last_;
  ReplicaSteps steps_;
  int losses_ = 0;  // since the last step without an error
  StopRequest stop_;
  std::atomic<bool> step_aborted_ = false;  // since run() began its step
  mutable Mutex mutex_;
  std::shared_ptr<engine::Session> session_ DTF_GUARDED_BY(mutex_);  // shared with abortStep()
  int saving_ DTF_GUARDED_BY(mutex_) = 0;                            // stop() saves within
};

}  // namespace dtf::train
