#include "launcher/session.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/check.h"
#include "common/base/json.h"
#include "common/base/text.h"
#include "common/base/wall_time.h"
#include "common/net/asio.h"
#include "launcher/announce.h"
#include "launcher/chief_reports.h"
#include "launcher/event_writer.h"
#include "launcher/last_words.h"
#include "launcher/line_splitter.h"
#include "launcher/live_status.h"
#include "launcher/log_fanin.h"
#include "launcher/model_copy.h"
#include "launcher/monitor_limits.h"
#include "launcher/output.h"
#include "launcher/progress_display.h"
#include "launcher/report.h"
#include "launcher/run_folder.h"
#include "launcher/snapshot_guard.h"
#include "launcher/stop_signals.h"
#include "launcher/summary.h"
#include "launcher/task_host.h"
#include "launcher/timeline.h"

namespace dtf::launcher {

namespace {

// For deadlines, the status line, a slow terminal.
constexpr auto kTick = std::chrono::milliseconds(50);
// For status.json, and whether a task is suspended.
constexpr Duration kLookEvery = std::chrono::milliseconds(500);

// Owns: everything of one launch.  Threads: loop-thread only.
class Session : public TaskEvents {
 public:
  Session(const cluster::JobSpec& job, const LaunchOptions& options);
  ~Session() override;
  int run();

 private:
  // What is known of a task's process.
  struct RunningTask {
    bool asked_for = false;                        // the host has not answered yet
    pid_t pid = 0;                                 // 0: none, or on another host
    std::unique_ptr<LineSplitter> notice_lines{};  // null: there is none that counts
  };

  void onSignal(int signal);
  std::vector<TaskCommand> prepare();
  void startTasks();
  void startTask(size_t task);
  void startAgain(size_t task);
  void onStarted(size_t task, pid_t pid) override;
  void onStartFailed(size_t task, const Error& error) override;
  void onOutput(size_t task, std::string_view bytes) override;
  void onNotices(size_t task, std::string_view bytes) override;
  void onExited(size_t task, ExitStatus status) override;
  void onHostTold(const std::string& text) override { alarm(text); }
  void onHostNews(const std::string& text) override { say(text); }
  void onWorkerLost(const WorkerLostNotice& lost);
  int attemptOf(size_t task) const { return attempt_ + int(monitor_.processIndex(task)); }
  void tick();
  void look();
  void onNotice(size_t task, std::string_view line, bool cut);
  void act();
  void onFirstReady();
  void alarm(const std::string& text) { console_.line("dtf-launch: " + text); }
  void say(const std::string& text) {
    if (options_.verbosity != Verbosity::kQuiet) alarm(text);
  }
  void recordLaunch();
  int end();
  void fetchModel();
  Json summaryNow() const;
  Json writeSummaryFile();

  const cluster::JobSpec& job_;
  const LaunchOptions& options_;
  const SystemClock clock_;
  const TimePoint start_time_ = clock_.now();
  boost::asio::io_context io_{1};
  const std::unique_ptr<TaskHost> host_;  // before all that has descriptors
  RunFolder folder_;
  SnapshotGuard snapshots_;  // within the lock of folder_
  const int attempt_;
  ChosenAddresses chosen_;
  std::vector<TaskCommand> plan_;  // one a task
  boost::asio::steady_timer timer_{io_};
  Console console_;
  EventWriter events_;
  TaskMonitor monitor_;
  ProgressDisplay display_;
  ChiefReports reports_;
  LogFanin logs_;
  TimePoint looked_;
  bool folder_lost_ = false;            // and said so
  bool ended_ = false;                  // only hosts are waited for
  bool rest_ends_ = false;              // behind the result, and said so
  std::optional<bool> interrupted_;     // fetching the model; null: it isn't, or not yet
  std::string model_;                   // its folder here; empty: it is not told
  std::optional<double> wall_seconds_;  // until the job has ended
  bool out_of_memory_ = false;          // the kernel has killed a task for lack of it
  std::vector<RunningTask> running_;    // one a task
  std::optional<StopSignals> signals_;
};

Session::Session(const cluster::JobSpec& job, const LaunchOptions& options)
    : job_(job),
      options_(options),
      host_(makeTaskHost(job, options.files, io_, clock_, *this)),
      folder_(job.run_dir),
      snapshots_(job),
      attempt_(options.attempt.value_or(nextAttempt(folder_.logs()))),
      console_(STDERR_FILENO, canRedraw(STDERR_FILENO), useColor(options.color, STDERR_FILENO)),
      events_(STDOUT_FILENO, options.json),
      monitor_(allTasks(job.cluster), clock_, limitsOf(job, options.plan.serves)),
      display_(console_, monitor_, clock_, fromSeconds(job.timeouts.start_seconds),
               job.train ? job.train->report_every_steps : 0,
               options.verbosity != Verbosity::kQuiet),
      reports_(
          job, events_, display_, [this](const std::string& text) { say(text); },
          [this](const std::string& text) { alarm(text); }, options.exchange_seconds),
      logs_(folder_.logs(), allTasks(job.cluster), useColor(options.color, STDERR_FILENO),
            options.verbosity == Verbosity::kVerbose,
            [this](auto line, auto prefix) { console_.line(line, prefix); }),
      running_(monitor_.size()) {}

// Where an error ends run(): what a host still tells is told to what is still there.
Session::~Session() {
  ended_ = true;
  host_->close();
}

int Session::run() {
  DTF_CHECK(attempt_ >= 1 && monitor_.size() == running_.size());
  signals_.emplace(io_, [this](int signal) { onSignal(signal); });
  removeTimelines(folder_.path(), allTasks(job_.cluster));
  // `stop` and `status` find the job while its hosts are awaited.
  if (const std::string lost = options_.on_held ? options_.on_held() : ""; !lost.empty())
    alarm(lost);
  plan_ = prepare();
  folder_.begin(monitor_.serves());
  say(startText(job_, folder_.logs()));
  startTasks();
  act();
  tick();
  io_.run();
  return end();
}

// Before any task runs: a mistake found here has its place in the file and is for main() to print.
std::vector<TaskCommand> Session::prepare() {
  try {
    chosen_ = host_->listen(specsOf(job_.cluster), job_.cluster.mayBeReached(),
                            [this] { return monitor_.stopping(); });
    if (monitor_.stopping()) return {};
    return makePlan(job_, options_.plan, chosen_);
  } catch (const Error& error) {
    monitor_.onError(std::nullopt, error);
    events_.summary(folder_.hasSummary() ? summaryNow() : writeSummaryFile());
    throw;
  }
}

void Session::onSignal(int signal) {
  if (interrupted_) interrupted_ = true;
  if (ended_ || interrupted_) return;
  const bool was_stopping = monitor_.stopping(), was_saving = monitor_.saving();
  monitor_.onStopRequest(signal);
  if (!was_saving || !monitor_.saving())
    say(signalName(signal) + (was_stopping || was_saving ? ": killing the tasks"
                                                         : stoppingText(job_, monitor_.saving())));
  act();
}

void Session::startTasks() {
  monitor_.onStart();
  for (size_t task = 0; task < plan_.size() && !monitor_.stopping(); ++task) startTask(task);
  if (monitor_.stopping()) return;
  try {
    recordLaunch();
  } catch (const Error& error) {
    monitor_.onError(std::nullopt, error);
  }
}

void Session::startTask(size_t task) {
  TaskCommand command = plan_.at(task);
  DTF_CHECK_MSG(command.id == monitor_.id(task), command.id.name());
  running_.at(task).asked_for = true;
  command.env["DTF_ATTEMPT"] = std::to_string(attemptOf(task));
  // Set at every start: the environment of dtf-launch itself may have some.
  command.env["DTF_FINISHED_WORKERS"] =
      fmt::format("{}", fmt::join(finishedWorkers(monitor_.facts()), ","));
  // Training begins when all are ready.
  const bool has_begun = monitor_.processIndex(task) > 0 && monitor_.allReady();
  command.env["DTF_REACHED_STEP"] =
      command.id == kChief && has_begun ? std::to_string(reports_.step()) : "";
  host_->start(task, command);
}

void Session::onStarted(size_t task, pid_t pid) {
  // It was asked for before the job began to stop.
  if (monitor_.stopping() || !awaitsProcess(monitor_.state(task)))
    return host_->signal(task, SIGKILL);
  monitor_.onSpawned(task);
  events_.started(monitor_.id(task), pid);
  running_.at(task) = {false, pid,
                       std::make_unique<LineSplitter>(
                           kNoticeBytesMax, [this, task](std::string_view line, bool cut) {
                             onNotice(task, line, cut);
                           })};
  try {
    logs_.add(task, attemptOf(task));
  } catch (const Error& error) {
    monitor_.onError(task, error);
  }
}

void Session::onOutput(size_t task, std::string_view bytes) {
  if (running_.at(task).notice_lines) logs_.feed(task, bytes);
}

void Session::onNotices(size_t task, std::string_view bytes) {
  if (running_.at(task).notice_lines) running_[task].notice_lines->feed(bytes);
}

void Session::onStartFailed(size_t task, const Error& error) {
  monitor_.onError(task, error);
}

// What --fresh set aside stays there: the job goes on.
void Session::startAgain(size_t task) {
  if (!plan_.at(task).stays_fresh) std::erase(plan_.at(task).argv, "--fresh");
  startTask(task);
  if (monitor_.stopping()) return;
  try {
    recordLaunch();
  } catch (const Error& error) {
    alarm("warning: " + error.message());  // the job needs it not
  }
}

// It may be frozen: then its place is free only when it is gone.
void Session::onWorkerLost(const WorkerLostNotice& lost) {
  const auto launched = static_cast<uint32_t>(attempt_);
  for (size_t task = 0; task < running_.size(); ++task)
    if (monitor_.id(task).name() == lost.worker && lost.attempt >= launched)
      monitor_.onLost(task, lost.attempt - launched);
  act();
}

void Session::recordLaunch() {
  LaunchRecord record{.job = job_.job, .launcher = ::getpid(), .attempt = attempt_};
  record.serves = monitor_.serves();
  for (size_t task = 0; task < running_.size(); ++task) {
    const TaskId id = monitor_.id(task);
    record.tasks.push_back({id.name(), running_[task].pid, addressOf(job_.cluster, chosen_, id)});
  }
  folder_.record(record);
}

void Session::tick() {
  const bool was_saving = monitor_.saving();
  monitor_.onTime();
  for (const size_t task : monitor_.takeStarts())
    if (!running_.at(task).asked_for) startAgain(task);
  if (was_saving && monitor_.stopping())
    say(fmt::format("no checkpoint within timeouts.stop_seconds, {:g} s: stopping the tasks",
                    job_.timeouts.stop_seconds));
  act();
  if (monitor_.finished()) return;
  if (clock_.now() >= looked_ + kLookEvery) look();
  display_.refresh();
  console_.pump();
  events_.pump();
  timer_.expires_after(kTick);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) tick();
  });
}

void Session::look() {
  looked_ = clock_.now();
  host_->look();
  if (!folder_lost_ && !folder_.held()) {
    folder_lost_ = true;
    alarm("warning: " + lostFolderText(folder_.path()));
  }
  for (size_t task = 0; task < running_.size(); ++task)
    monitor_.onSuspended(task, monitor_.alive(task) && host_->suspended(task));
  const ProgressMeter& meter = display_.meter();
  writeStatus(folder_.status(), LiveStatus{meter.last(), reports_.evaluation(),
                                           reports_.checkpoint(), meter.stepsPerSecond(),
                                           meter.secondsLeft(), display_.text(), wallTimeText()});
}

void Session::onFirstReady() {
  say(readyText(monitor_.size(), toSeconds(clock_.now() - start_time_)));
  if (monitor_.serves()) {
    const std::vector<std::string> targets = targetsOf(job_.cluster, chosen_);
    say(servingText(targets) + "; Ctrl-C ends all");
    events_.serving(targets);
  }
  look();  // who is told so asks status.json next
  if (options_.on_ready) options_.on_ready();
}

void Session::onNotice(size_t task, std::string_view line, bool cut) {
  std::optional<Notice> notice = cut ? std::nullopt : parseNotice(line);
  if (!notice) return;
  const TaskId id = monitor_.id(task);
  if (std::holds_alternative<ReadyNotice>(*notice)) {
    const bool all_before = monitor_.allReady();
    monitor_.onReady(task);
    events_.ready(id);
    if (monitor_.allReady() && !all_before) onFirstReady();
    if (monitor_.restarts(task) > 0)
      say(id.name() + (monitor_.serves() ? " is back, without its variables" : " is back"));
  } else if (std::holds_alternative<FinishedNotice>(*notice)) {
    monitor_.onFinished(task);
  } else if (auto* failed = std::get_if<FailedNotice>(&*notice)) {
    monitor_.onFailedNotice(task, std::move(*failed));
  } else if (const auto* lost = std::get_if<WorkerLostNotice>(&*notice)) {
    if (job_.cluster.shardHosts().shardOf(id)) onWorkerLost(*lost);
  } else if (const auto* waiting = std::get_if<WaitingNotice>(&*notice)) {
    monitor_.onWaiting(task, waiting->whom);
  }
  if (id != kChief) return;  // the rest is the chief's to report
  reports_.onNotice(*notice, monitor_.saving());
  if (reports_.isOver() && !monitor_.serves()) monitor_.onResult(reports_.isDone());
}

void Session::onExited(size_t task, ExitStatus status) {
  if (!running_.at(task).notice_lines) return;
  DTF_CHECK_MSG(monitor_.alive(task), monitor_.id(task).name());
  running_[task] = {};
  out_of_memory_ = out_of_memory_ || status.memory_ran_out;
  logs_.finish(task);
  events_.ended(monitor_.id(task), status);
  const bool was_saving = monitor_.saving(), was_stopping = monitor_.stopping();
  monitor_.onExit(task, status);
  if (was_saving && monitor_.id(task) == kChief && monitor_.state(task) == TaskState::kStopped)
    say("worker/0 has ended at once: only the checkpoints reported above are saved");
  if (monitor_.state(task) == TaskState::kWaiting) {
    alarm(monitor_.restartText(task));
    events_.restarting(monitor_.id(task), monitor_.processIndex(task));
  } else {
    host_->release(task, monitor_.id(task));
  }
  const bool is_late =
      monitor_.state(task) == TaskState::kStopped || monitor_.state(task) == TaskState::kDone;
  const bool is_own = status.crashed() || !(status.success() || status.paused() || isLate(status));
  if (is_own && is_late && (!was_stopping || monitor_.endsTheRest()))
    alarm(fmt::format("warning: {} {}, after the job had its result{}", monitor_.id(task).name(),
                      status.text(),
                      status.crashed() ? "; this is a bug of dtf: please report its log" : ""));
  if (monitor_.state(task) == TaskState::kMissed)
    alarm("warning: " + monitor_.cause(task) + ": a backup worker, the job goes on without it");
  act();
}

// Carries out what the monitor has decided since the last call.
void Session::act() {
  if (!rest_ends_ && monitor_.endsTheRest() &&
      !monitor_.names(TaskMonitor::Named::kAlive).empty()) {
    rest_ends_ = true;
    alarm("the job has its result; ending the tasks that still run: " +
          monitor_.names(TaskMonitor::Named::kAlive));
  }
  for (const SignalOrder order : monitor_.takeOrders()) host_->signal(order.task, order.signal);
  if (monitor_.finished()) io_.stop();
}

// However long it takes, and whatever happens meanwhile: summary.json is there.
void Session::fetchModel() {
  const std::optional<uint64_t> checkpoint = reports_.checkpoint();
  if (!checkpoint || !job_.launch.byAgents()) return;
  const std::string outcome = writeSummaryFile().stringAt("outcome");
  if (!wantsModel(job_.launch, outcome)) return;
  interrupted_ = false;
  try {
    if (host_->fetchModel(*checkpoint, [this] { return console_.pump(), *interrupted_; }))
      model_ = folder_.path() / "checkpoints" / ("step-" + std::to_string(*checkpoint));
  } catch (const Error& error) {
    alarm(noModelText(job_, outcome, *checkpoint, error));
  }
}

int Session::end() {
  DTF_CHECK(monitor_.finished());
  wall_seconds_ = toSeconds(clock_.now() - start_time_);
  const std::string kept = snapshots_.endWith(monitor_.outcome(), monitor_.allReady());
  if (!kept.empty()) alarm(kept);
  if (!snapshots_.keeps()) host_->dropSnapshots();
  fetchModel();
  ended_ = true;
  host_->close();
  for (size_t task = 0; task < running_.size(); ++task) logs_.finish(task);
  display_.finish();
  console_.finish();
  const Json summary = writeSummaryFile();
  ::unlink(folder_.status().c_str());
  try {
    mergeTimelines(folder_.path(), allTasks(job_.cluster));
  } catch (const Error& error) {  // a job without one is still a job that is done
    alarm("warning: no timeline.json: " + error.message());
  }
  return sayLastWords({job_, monitor_, logs_, folder_.path(), out_of_memory_, folder_.isKept()},
                      options_.json ? &events_ : nullptr, summary);
}

Json Session::summaryNow() const {
  JobSummary summary = summarize(job_.job, monitor_, wall_seconds_.value_or(0));
  summary.progress = display_.meter();
  summary.result = reports_.result();
  summary.checkpoint = reports_.checkpoint();
  summary.attempt = attempt_;
  summary.model = model_;
  return summaryJson(summary);
}

Json Session::writeSummaryFile() {
  Json json = summaryNow();
  const bool is_refused = monitor_.outcome() == Outcome::kFailed && !reports_.hasBegun();
  const std::string problem = folder_.writeSummary(json, is_refused, reports_.wasDone());
  if (!problem.empty()) alarm(problem);
  return json;
}

}  // namespace

int launch(const cluster::JobSpec& job, const LaunchOptions& options) {
  return Session(job, options).run();
}

}  // namespace dtf::launcher
