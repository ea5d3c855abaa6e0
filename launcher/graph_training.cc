#include "launcher/graph_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/file_system.h"
#include "common/base/ids.h"
#include "common/checkpoint/checkpoint_folder.h"
#include "common/cluster/read_train.h"
#include "common/optimizer/minimize.h"
#include "common/train/graph_supervisor.h"
#include "common/train/signal_watch.h"
#include "common/yaml/error_at.h"

namespace dtf::launcher {

namespace {

// A task that is lost is started again within this time, by `serve` or by systemd.
constexpr auto kTaskWaitMax = std::chrono::seconds(60);

std::optional<Duration> intervalOf(const model::GraphInterval& when) {
  if (when.every_seconds > 0) return fromSeconds(when.every_seconds);
  return std::nullopt;
}

bool isDue(const model::GraphInterval& when, int64_t step) {
  return when.every_steps > 0 && step % when.every_steps == 0;
}

train::GraphSupervisorOptions supervisorOptions(const model::GraphSpec& spec) {
  train::GraphSupervisorOptions options;
  options.task = "dtf-launch graph";
  options.log_dir = spec.log_dir;
  options.seed = spec.seed;
  options.save_every = intervalOf(spec.checkpoint->when);
  options.summarize_every.reset();
  options.wait_max = kTaskWaitMax;
  options.saver.max_to_keep = spec.checkpoint->keep;
  options.saver.global_step = model::kGraphGlobalStep;
  if (spec.summaries) {
    options.summarize_every = intervalOf(spec.summaries->when);
    options.summaries = spec.summaries->scalars;
    options.has_events = true;
  }
  return options;
}

// One run of a file's steps.
// Owns: the supervisor, and while it exists the process's handlers of SIGTERM and SIGINT.
// Borrows: the run.
// Threads: one.
class Supervised {
 public:
  explicit Supervised(const SupervisedRun& run)
      : run_(run),
        supervisor_(realFileSystem(), supervisorOptions(run.spec)),
        signals_(supervisor_, train::SecondSignal::kEndsProcess) {
    DTF_CHECK(run.spec.checkpoint.has_value() && !run.spec.log_dir.empty());
    fetches_ = run.spec.fetches;
    if (run.spec.summaries)
      for (const std::string& scalar : run.spec.summaries->scalars)
        if (std::find(fetches_.begin(), fetches_.end(), scalar) == fetches_.end())
          fetches_.push_back(scalar);
  }

  void toTheEnd() {
    checkpoint::CheckpointFolder folder(realFileSystem(), run_.spec.log_dir / "checkpoints",
                                        Incarnation::ofNow());
    folder.prepare();  // the first event needs the log_dir
    if (run_.is_fresh) startAnew(folder);
    supervisor_.prepare(
        run_.spec.graph, [this](const graph::Graph& graph) { return open(graph); }, false);
    goOnFromCounter();
    if (run_.timeline != nullptr) run_.timeline->startAfter(done_);
    while (done_ < run_.spec.steps && !supervisor_.shouldStop()) step();
    supervisor_.stop();
    if (done_ < run_.spec.steps)
      run_.on_event("stopped", done_,
                    fmt::format("stopped after step {} of {}, which is saved in {}; the same "
                                "command goes on from there",
                                done_, run_.spec.steps, run_.spec.log_dir.string()));
  }

 private:
  std::unique_ptr<engine::Session> open(const graph::Graph& graph) {
    ++opened_;
    return run_.open(graph, supervisor_.givesUp());
  }

  // The tasks come first: without them nothing is set aside.
  void startAnew(checkpoint::CheckpointFolder& folder) {
    open(run_.spec.graph)->reset("");
    if (const auto aside = folder.setAside())
      run_.on_event("set_aside", 0, "the old checkpoints are in " + aside->string());
  }

  // At the start, and after a loss, which may go back to a checkpoint.
  void goOnFromCounter() {
    done_ = supervisor_.globalStep();
    const bool is_done = done_ >= run_.spec.steps;
    if (done_ > 0)
      run_.on_event("resumed", done_,
                    fmt::format("goes on after step {} of {}{}", done_, run_.spec.steps,
                                is_done ? ": all steps are done; raise 'steps', or start anew "
                                          "with --fresh"
                                        : ""));
  }

  void step() {
    const bool is_traced = run_.timeline != nullptr && run_.timeline->wants(done_ + 1);
    engine::RunMetadata metadata;
    auto values = supervisor_.run(run_.feeds.of(done_ + 1), fetches_, run_.spec.targets,
                                  is_traced ? &metadata : nullptr);
    if (!values) {
      if (!supervisor_.shouldStop()) goOnFromCounter();
      return;
    }
    ++done_;
    const bool is_there = checkCount();
    if (is_traced) run_.timeline->write(done_, metadata.traces);
    if (is_there) writeWhatIsDue(*values);
    values->resize(run_.spec.fetches.size());
    run_.on_step(done_, *values);
    if (!is_there) goOnFromCounter();
  }

  // A failure to save, as on a full disk, doesn't end the run.
  void writeWhatIsDue(const std::vector<Tensor>& values) {
    if (run_.spec.summaries && isDue(run_.spec.summaries->when, done_))
      supervisor_.summarise(fetches_, values);
    if (isDue(run_.spec.checkpoint->when, done_)) supervisor_.saveOnTime();
  }

  // The first step of this process shows whether a step counts itself. Returns false if a task was
  // lost meanwhile: the counter may have gone back to a checkpoint, and a later step is checked.
  bool checkCount() {
    if (is_count_checked_) return true;
    const int opened = opened_;
    const int64_t counted = supervisor_.globalStep();
    if (opened_ != opened) return false;
    is_count_checked_ = true;
    if (counted == done_) return true;
    throw yaml::ErrorAt(
        ErrorCode::kBadConfig, run_.spec.checkpoint->mark,
        fmt::format("the step has not counted itself: '{}' is {} after step {}; name the op of "
                    "'minimize' (once), or the one that adds 1 to it, in 'targets'",
                    model::kGraphGlobalStep, counted, done_));
  }

  const SupervisedRun& run_;
  train::GraphSupervisor supervisor_;
  train::SignalWatch signals_;
  std::vector<std::string> fetches_;  // of the file, and the summaries
  int64_t done_ = 0;                  // the global step
  int opened_ = 0;                    // sessions: another one follows a loss
  bool is_count_checked_ = false;
};

}  // namespace

model::Minimize minimizer() {
  return [](graph::Graph& graph, const model::MinimizeRequest& request,
            yaml::Report& report) -> std::optional<model::MinimizeNodes> {
    const size_t mistakes = report.mistakes();
    cluster::OptimizerSpec spec =
        cluster::defaultOptimizer(cluster::OptimizerSpec::Kind::kGradientDescent);
    if (request.optimizer != nullptr) spec = cluster::readOptimizer(*request.optimizer, report);
    if (report.mistakes() > mistakes) return std::nullopt;
    optimizer::MinimizeOptions options{.variables = request.variables, .prefix = request.prefix};
    if (!request.global_step.empty()) options.global_step = request.global_step;
    const optimizer::Minimized made = optimizer::minimize(graph, request.loss, spec, options);
    DTF_CHECK(made.train.node.value >= 0);
    return model::MinimizeNodes{.train = made.train, .norm = made.norm};
  };
}

void runSupervised(const SupervisedRun& run) {
  Supervised(run).toTheEnd();
  if (run.timeline != nullptr) run.timeline->finish();
}

}  // namespace dtf::launcher
