#pragma once

// TensorFlow's Supervisor: one client, the chief, initialises or restores the model, saves it and
// writes summaries; the others wait for it. A lost task is waited for, and the model restored.
//
//   dtf::Supervisor supervisor({.is_chief = rank == 0, .log_dir = "runs/digits"});
//   supervisor.prepareOrWaitForSession(graph, targets);
//   while (!supervisor.shouldStop() && supervisor.globalStep() < 1000) {
//     const dtf::RunResult result = supervisor.run(feeds, {loss, train});
//     if (result.recovered) continue;   // a task was lost: the step may be an earlier one
//     std::printf("%f\n", result.values[0].as<float>()[0]);
//   }
//   supervisor.stop();

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "session.h"
#include "training.h"

namespace dtf {
inline namespace v1 {

struct SupervisorOptions {
  bool is_chief = true;
  std::string task = "worker/0";  // the name of this client in messages
  std::string log_dir = {};       // checkpoints in log_dir/checkpoints, event files in log_dir
  uint64_t seed = 0;              // of the first values
  double save_seconds = 600;      // between checkpoints; below 0: only at the end
  double summary_seconds = 120;   // between summaries; below 0: none
  double wait_seconds = 600;      // for the chief, or for a lost task
  double poll_seconds = 1;
  std::vector<std::string> summaries = {};  // float32 scalars, written when a step fetches them
  std::string global_step = "global_step";  // the name of the counter of steps
  std::string job = "graph";                // the name in the checkpoints
  int64_t max_to_keep = 5;                  // newest checkpoints; -1: all
  // SIGTERM and SIGINT end shouldStop(). Without it the library leaves signals alone.
  bool handle_signals = false;
};

struct RunResult {
  std::vector<Tensor> values;  // of the fetches; none if it has recovered
  // A task was lost, and the session was opened anew: the step was taken or not, the global step
  // may be an earlier one.
  bool recovered = false;
};

// Threads: one at a time; requestStop(), abort() and shouldStop() from any.
// Blocks: on the tasks, on the disk, and for wait_seconds at most while it waits for others.
// Errors: as dtf_supervisor_prepare() and dtf_supervisor_run() in
// <dtf/training.h>.
class Supervisor {
 public:
  explicit Supervisor(const SupervisorOptions& options = {}) {
    std::vector<const char*> summaries;
    for (const std::string& name : options.summaries) summaries.push_back(name.c_str());
    dtf_supervisor_options how{};
    how.size = sizeof(how);
    how.is_chief = options.is_chief ? 1 : 0;
    how.task = options.task.c_str();
    how.log_dir = options.log_dir.c_str();
    how.seed = options.seed;
    how.save_seconds = options.save_seconds;
    how.summary_seconds = options.summary_seconds;
    how.wait_seconds = options.wait_seconds;
    how.poll_seconds = options.poll_seconds;
    how.summaries = summaries.data();
    how.summaries_count = summaries.size();
    how.global_step = options.global_step.c_str();
    how.job = options.job.c_str();
    how.max_to_keep = options.max_to_keep;
    how.handle_signals = options.handle_signals ? 1 : 0;
    dtf_supervisor* made = nullptr;
    check(dtf_supervisor_new(&how, &made));
    handle_.reset(made);
  }

  // Opens the session. The chief restores or initialises; others wait until the model is ready.
  void prepareOrWaitForSession(const Graph& graph, const std::vector<std::string>& targets = {},
                               const dtf_session_options& options = Session::defaults()) {
    const std::vector<const char*> texts = textsOf(targets);
    check(dtf_supervisor_prepare(handle_.get(), graph.get(), texts.data(), texts.size(), &options));
  }

  // Runs a step as Session::run(); saves and writes summaries when they are due.
  RunResult run(const std::vector<Feed>& feeds, const std::vector<std::string>& fetches,
                const std::vector<std::string>& targets = {}) {
    std::vector<dtf_feed> fed;
    for (const Feed& feed : feeds) fed.push_back({feed.tensor.c_str(), feed.value.get()});
    const std::vector<const char*> fetched = textsOf(fetches), also = textsOf(targets);
    std::vector<dtf_tensor*> values(fetches.size());
    int recovered = 0;
    check(dtf_supervisor_run(handle_.get(), fed.data(), fed.size(), fetched.data(), fetched.size(),
                             values.data(), also.data(), also.size(), &recovered));
    RunResult result;
    result.recovered = recovered != 0;
    if (result.recovered) return result;
    result.values.reserve(values.size());
    for (dtf_tensor* const value : values) result.values.emplace_back(value);
    return result;
  }
  // Reads the global step.
  int64_t globalStep() {
    int64_t step = 0;
    check(dtf_supervisor_global_step(handle_.get(), &step));
    return step;
  }
  // The chief saves now; no effect in others.
  void save() { check(dtf_supervisor_save(handle_.get())); }

  void requestStop() { dtf_supervisor_request_stop(handle_.get()); }
  // Also ends the step that another thread runs.
  void abort(const std::string& why) { check(dtf_supervisor_abort(handle_.get(), why.c_str())); }
  bool shouldStop() const { return dtf_supervisor_should_stop(handle_.get()) != 0; }
  // The chief saves, if a step was taken since the last checkpoint.
  void stop() { check(dtf_supervisor_stop(handle_.get())); }

  dtf_supervisor* get() { return handle_.get(); }

 private:
  static std::vector<const char*> textsOf(const std::vector<std::string>& texts) {
    std::vector<const char*> pointers;
    for (const std::string& text : texts) pointers.push_back(text.c_str());
    return pointers;
  }

  struct Free {
    void operator()(dtf_supervisor* supervisor) const { dtf_supervisor_free(supervisor); }
  };
  std::unique_ptr<dtf_supervisor, Free> handle_;
};

}  // namespace v1
}  // namespace dtf
