#include "common/train/graph_supervisor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/failpoint.h"
#include "common/base/log.h"

namespace dtf::train {
namespace {

using engine::Session;

// Losses one after another, without a step between them: the cause is not a task that returns.
constexpr int kLossesMax = 20;
// A task that waits logs at most this often.
constexpr auto kLogEvery = std::chrono::seconds(10);
// A client that starts at a finished run waits so long for the chief of the next one.
constexpr auto kNextRunMax = std::chrono::seconds(10);
// After a refused gradient a client tries so long to read whether the run is finished.
constexpr auto kMarkPatience = std::chrono::seconds(60);

std::string listed(const std::vector<std::string>& names) {
  constexpr size_t kNamedMax = 3;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kNamedMax); ++i)
    text += (i == 0 ? "'" : ", '") + names[i] + "'";
  if (names.size() > kNamedMax) text += fmt::format(" and {} more", names.size() - kNamedMax);
  return text;
}

std::string withoutIndex(const std::string& tensor) {
  return tensor.ends_with(":0") ? tensor.substr(0, tensor.size() - 2) : tensor;
}

}  // namespace

GraphSupervisor::GraphSupervisor(FileSystem& file_system, GraphSupervisorOptions options)
    : file_system_(file_system),
      options_(std::move(options)),
      saver_(file_system, options_.saver),
      mark_(options_.log_dir, options_.is_chief) {
  if (options_.is_chief && options_.log_dir.empty())
    throw Error(ErrorCode::kUsage,
                "the chief's supervisor has no log_dir: name the folder of its checkpoints");
}

GraphSupervisor::~GraphSupervisor() = default;

std::shared_ptr<Session> GraphSupervisor::session() const {
  MutexLock lock(mutex_);
  if (session_ == nullptr)
    throw Error(ErrorCode::kUsage,
                "prepare the supervisor first: " + options_.task + " has no session yet");
  return session_;
}

void GraphSupervisor::prepare(const graph::Graph& graph, Open open, bool is_local) {
  graph_.emplace(graph);
  open_ = std::move(open);
  is_local_ = is_local;
  mark_.place(open_, options_.saver.global_step);
  const graph::Node* const counter = graph.find(options_.saver.global_step);
  if (counter == nullptr || counter->op != "Variable" || counter->outputs[0].dtype != DType::kInt64)
    throw Error(ErrorCode::kBadConfig, "the graph has no counter '" + options_.saver.global_step +
                                           "', an int64 variable: minimize a loss first, or name "
                                           "the counter in the options");
  steps_ = ReplicaSteps(graph, options_.saver.global_step);
  recover();
  was_ready_ = true;
  losses_ = 0;
  last_.saved_at = last_.summarised_at = clock().now();
  const int64_t step = globalStep();
  last_.summarised_step = step;
  if (!options_.is_chief || !(options_.summarize_every || options_.has_events)) return;
  events_ = std::make_unique<summary::EventWriter>(file_system_, options_.log_dir);
  events_->addSession(static_cast<uint64_t>(step), summary::SessionStatus::kStart);
}

void GraphSupervisor::openSession() {
  DTF_FAILPOINT("supervisor.before_open");
  std::shared_ptr<Session> made = open_(*graph_);
  DTF_FAILPOINT("supervisor.after_open");
  mark_.close();
  MutexLock lock(mutex_);
  session_ = std::move(made);
}

int64_t GraphSupervisor::readMark() {
  return is_local_ ? 0 : mark_.read(*session());
}

void GraphSupervisor::setMark(int64_t value) {
  if (!is_local_) mark_.write(*session(), value);
}

// Opens the session until the model is ready in it. Tasks come back one by one, so any of this may
// fail a few times.
void GraphSupervisor::recover() {
  const TimePoint begin = clock().now(), deadline = begin + options_.wait_max;
  TimePoint logged = begin;
  const MarkUse use(*this);
  const StopRequest::Recovering recovering(stop_);
  for (bool is_open = false;;) {
    std::string missing;
    const TimePoint now = clock().now();
    try {
      if (!is_open) openSession();
      is_open = true;
      if (tryReady(missing, now - begin)) return;
    } catch (const Error& error) {
      const bool may_return =
          error.code() == ErrorCode::kUnavailable || error.code() == ErrorCode::kDeadline;
      if (!may_return) throw;
      is_open = false;
      missing = error.message();
    }
    if (now >= deadline) giveUp(missing);
    if (stop_.isSet())
      throw Error(ErrorCode::kUnavailable,
                  options_.task + " was asked to stop while it waited: " + missing);
    if (now - logged >= kLogEvery) {
      logged = now;
      log::warning("event=supervisor_waits task={} seconds={:.0f} of={:.0f} reason=\"{}\"",
                   options_.task, toSeconds(now - begin), toSeconds(options_.wait_max), missing);
    }
    pause(std::min(deadline, now + options_.poll_every));
  }
}

void GraphSupervisor::giveUp(const std::string& missing) const {
  throw Error(ErrorCode::kDeadline, fmt::format("{} has waited for {:g} s: {}", options_.task,
                                                toSeconds(options_.wait_max), missing));
}

const Clock& GraphSupervisor::clock() const {
  static const SystemClock system;
  return options_.clock == nullptr ? system : *options_.clock;
}

// Ends with a request to stop.
void GraphSupervisor::pause(TimePoint until) {
  if (options_.wait_until) return options_.wait_until(until);
  stop_.wait(clock(), until);
}

// The first loss is recovered at once; then whatever causes them needs time.
void GraphSupervisor::pauseAfterLosses() {
  if (losses_ > 1) pause(clock().now() + options_.poll_every);
}

// The variables come first: the chief sets the mark to 0 before it sets any of them, so a mark that
// is read afterwards is of these values.
bool GraphSupervisor::tryReady(std::string& missing, Duration waited) {
  const std::vector<std::string> without = session()->uninitialized();
  const int64_t mark = readMark();
  const bool is_there = without.empty() && mark_.isOwn(mark);
  if (is_there && mark > 0) {
    if (!options_.is_chief || steps_.isWhole(*session())) return true;
    // Another client may be about to complete it.
    missing = fmt::format("waiting for all variables to take step {}", steps_.step());
    if (!steps_.isStuck() && waited + options_.poll_every < options_.wait_max) return false;
    log::warning("event=step_incomplete task={} step={} next=\"the last checkpoint\"",
                 options_.task, steps_.step());
  }
  if (options_.is_chief) {
    initialiseModel();
    return true;
  }
  // A client that has just started may be earlier than the chief of the next run.
  const bool is_finished = is_there && mark < 0;
  if (is_finished && (was_ready_ || waited >= std::min<Duration>(options_.wait_max, kNextRunMax))) {
    noteFinished();
    return true;
  }
  if (is_finished)
    missing = "the run is finished: waiting for " + options_.chief + " to begin another";
  else if (without.empty())
    missing = "waiting for " + options_.chief + " to mark the model as ready";
  else
    missing = fmt::format("waiting for {} to initialise {}", options_.chief, listed(without));
  if (mark != 0 && !mark_.isOwn(mark))
    missing += "; the tasks have the model of another log_dir than " + options_.log_dir.string();
  return false;
}

void GraphSupervisor::noteFinished() {
  if (!shouldStop())
    log::info("event=run_finished task={} by={} log_dir={}", options_.task, options_.chief,
              options_.log_dir.string());
  stop_.endRun();
}

// The chief's stop() makes steps of others fail: those that wait, and later ones. After a refused
// gradient (kOutOfRange) the session is whole, so recover() would not look at the mark: a task that
// has no room for the mark's session now is asked again.
bool GraphSupervisor::isFinished(const Error& error) {
  const bool may_be = error.code() == ErrorCode::kOutOfRange ||
                      error.code() == ErrorCode::kUnavailable ||
                      error.code() == ErrorCode::kDeadline;
  if (options_.is_chief || is_local_ || !may_be) return false;
  const TimePoint deadline = clock().now() + std::min<Duration>(options_.wait_max, kMarkPatience);
  const MarkUse use(*this);
  std::optional<bool> is_finished;
  while (!(is_finished = tryFinished())) {
    const TimePoint now = clock().now();
    if (error.code() != ErrorCode::kOutOfRange || stop_.isSet() || now >= deadline) return false;
    pause(std::min(deadline, now + options_.poll_every));
  }
  if (*is_finished) noteFinished();
  return *is_finished;
}

// Returns whether the run is marked as finished; nullopt if the task of the mark doesn't reply.
std::optional<bool> GraphSupervisor::tryFinished() {
  try {
    const int64_t mark = readMark();
    return mark < 0 && mark_.isOwn(mark);
  } catch (const Error& error) {
    mark_.close();
    if (error.code() == ErrorCode::kUnavailable || error.code() == ErrorCode::kDeadline)
      return std::nullopt;
    log::warning("event=mark_not_read task={} reason=\"{}\"", options_.task, error.message());
    return false;
  }
}

void GraphSupervisor::initialiseModel() {
  steps_.forgetLooks();
  setMark(0);
  const std::shared_ptr<Session> of = session();
  if (saver_.latest(checkpoints())) {
    last_.saved_step = static_cast<int64_t>(saver_.restore(*of, checkpoints()));
  } else {
    of->initialize(options_.seed);
    last_.saved_step = -1;
  }
  DTF_FAILPOINT("supervisor.after_initialise");
  setMark(mark_.number());
  DTF_FAILPOINT("supervisor.after_ready");
}

// A variable without a value and a wrong graph have the same error code.
bool GraphSupervisor::isLost(const Error& error) {
  if (is_local_) return false;
  if (error.code() == ErrorCode::kUnavailable) return true;
  if (error.code() != ErrorCode::kBadConfig) return false;
  try {
    return !session()->uninitialized().empty();
  } catch (const Error& other) {
    return other.code() == ErrorCode::kUnavailable;
  }
}

std::optional<GraphSupervisor::Values> GraphSupervisor::run(std::span<const engine::Feed> feeds,
                                                            std::span<const std::string> fetches,
                                                            std::span<const std::string> targets,
                                                            engine::RunMetadata* metadata) {
  step_aborted_ = false;
  DTF_FAILPOINT("supervisor.before_step");
  Outcome outcome = tryRun(feeds, fetches, targets, metadata);
  if (const Error* const error = std::get_if<Error>(&outcome)) {
    if (isFinished(*error)) return std::nullopt;
    if (!isLost(*error)) throw *error;
    if (step_aborted_.exchange(false)) return std::nullopt;
    if (stop_.isSet()) throw *error;
    noteLoss(*error);
    recover();
    return std::nullopt;
  }
  DTF_FAILPOINT("supervisor.after_step");
  losses_ = 0;
  Values& values = std::get<Values>(outcome);
  if (options_.is_chief) afterStep(fetches, values);
  return std::move(values);
}

// Callers ask the tasks about the error, which no handler of an exception should wait for.
GraphSupervisor::Outcome GraphSupervisor::tryRun(std::span<const engine::Feed> feeds,
                                                 std::span<const std::string> fetches,
                                                 std::span<const std::string> targets,
                                                 engine::RunMetadata* metadata) {
  try {
    return session()->run(feeds, fetches, targets, metadata);
  } catch (const Error& error) {
    return error;
  }
}

GraphSupervisor::Outcome GraphSupervisor::tryGlobalStep() {
  return tryRun({}, std::vector<std::string>{options_.saver.global_step}, {}, nullptr);
}

int64_t GraphSupervisor::stepIn(const Outcome& outcome) {
  if (const Error* const error = std::get_if<Error>(&outcome)) throw *error;
  return std::get<Values>(outcome).at(0).as<int64_t>()[0];
}

// After many losses in a row, a loss is an error.
void GraphSupervisor::noteLoss(const Error& error) {
  if (++losses_ > kLossesMax) throw error;
  log::warning("event=session_lost task={} reason=\"{}\"", options_.task, error.message());
  pauseAfterLosses();
}

int64_t GraphSupervisor::globalStep() {
  for (;;) {
    const Outcome outcome = tryGlobalStep();
    const Error* const error = std::get_if<Error>(&outcome);
    if (error == nullptr) return stepIn(outcome);
    if (!isFinished(*error) && (!isLost(*error) || stop_.isSet())) throw *error;
    noteLoss(*error);
    recover();
  }
}

void GraphSupervisor::afterStep(std::span<const std::string> fetches, const Values& values) {
  const TimePoint now = clock().now();
  if (events_ != nullptr && options_.summarize_every &&
      now - last_.summarised_at >= *options_.summarize_every)
    summarise(fetches, values);
  if (options_.save_every && now - last_.saved_at >= *options_.save_every) saveOnTime();
}

// A step that fetches none of the named tensors writes nothing.
void GraphSupervisor::summarise(std::span<const std::string> fetches, const Values& values) {
  DTF_CHECK(events_ != nullptr);
  summary::StepSummary written;
  for (size_t i = 0; i < fetches.size(); ++i) {
    const std::string name = withoutIndex(fetches[i]);
    const auto is_it = [&](const std::string& each) { return withoutIndex(each) == name; };
    if (std::none_of(options_.summaries.begin(), options_.summaries.end(), is_it)) continue;
    if (values[i].dtype() != DType::kFloat32 || values[i].shape().elements() != 1)
      throw Error(ErrorCode::kBadConfig,
                  "the summary '" + name + "' is no float32 scalar: name its mean, for example");
    written.scalars.push_back({name, values[i].as<float>()[0]});
  }
  if (written.scalars.empty() && !options_.summaries.empty()) return;
  const TimePoint now = clock().now();
  const Outcome outcome = tryGlobalStep();
  const Error* const error = std::get_if<Error>(&outcome);
  if (error != nullptr && isLost(*error)) return;  // the next run() recovers
  const int64_t step = stepIn(outcome);
  DTF_FAILPOINT("supervisor.before_summary");
  const double seconds = toSeconds(now - last_.summarised_at);
  if (seconds > 0 && step > last_.summarised_step)
    written.scalars.push_back(
        {"global_step/sec", static_cast<double>(step - last_.summarised_step) / seconds});
  events_->add(static_cast<uint64_t>(step), std::move(written));
  last_.summarised_at = now;
  last_.summarised_step = step;
  DTF_FAILPOINT("supervisor.after_summary");
}

void GraphSupervisor::saveOnTime() {
  try {
    save();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kTrainingFailed) throw;
    log::warning("event=checkpoint_failed folder={} reason=\"{}\"", checkpoints().string(),
                 error.message());
  }
  last_.saved_at = clock().now();
}

void GraphSupervisor::save() {
  if (!options_.is_chief) return;
  const Saving saving(*this);
  DTF_FAILPOINT("supervisor.before_save");
  const std::filesystem::path path = saver_.save(*session(), checkpoints());
  last_.saved_at = clock().now();
  const std::string name = path.filename().string();
  last_.saved_step = std::stoll(name.substr(name.rfind('-') + 1));
  if (events_ != nullptr)
    events_->addSession(static_cast<uint64_t>(last_.saved_step),
                        summary::SessionStatus::kCheckpoint, path.string());
  DTF_FAILPOINT("supervisor.after_save");
}

// Without prepare() there is nothing to save. The next run of the log_dir begins with the
// checkpoint. The mark comes before the end of the waits: a client whose wait ends looks at it.
void GraphSupervisor::stop() {
  stop_.ask();
  DTF_FAILPOINT("supervisor.before_stop");
  if (!options_.is_chief || !was_ready_) return;
  const Saving saving(*this);
  const MarkUse use(*this);
  const int64_t step = stepIn(tryGlobalStep());
  if (step != last_.saved_step) save();
  DTF_FAILPOINT("supervisor.after_last_save");
  setMark(-mark_.number());
  DTF_FAILPOINT("supervisor.after_finished");
  steps_.finish(*session());
  DTF_FAILPOINT("supervisor.after_finish");
  if (events_ == nullptr) return;
  events_->addSession(static_cast<uint64_t>(step), summary::SessionStatus::kStop);
  const summary::EventWriterStatus status = events_->finish();
  events_.reset();
  if (!status.degraded.empty())
    throw Error(ErrorCode::kCannotWrite, "the event file: " + status.degraded);
}

// With the lock, so that no save begins between the check and the abort.
bool GraphSupervisor::abortStep(const std::string& why) {
  MutexLock lock(mutex_);
  if (saving_ > 0) return false;
  step_aborted_ = true;
  if (session_ != nullptr)
    session_->abort(Error(ErrorCode::kUnavailable, options_.task + " ends its step: " + why));
  return true;
}

GraphSupervisor::Saving::Saving(GraphSupervisor& supervisor) : supervisor_(supervisor) {
  MutexLock lock(supervisor_.mutex_);
  ++supervisor_.saving_;
}

GraphSupervisor::Saving::~Saving() {
  MutexLock lock(supervisor_.mutex_);
  DTF_CHECK(supervisor_.saving_ > 0);
  --supervisor_.saving_;
}

}  // namespace dtf::train
