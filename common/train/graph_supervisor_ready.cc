// A supervisor's mark on the tasks: whether the model is ready, whole, or its run finished.

#include <fmt/format.h>

#include <algorithm>

#include "common/base/check.h"
#include "common/base/failpoint.h"
#include "common/base/log.h"
#include "common/graph/op_def.h"
#include "common/train/graph_supervisor.h"

namespace dtf::train {
namespace {

using engine::Session;

// The op that takes a step of synchronous replicas.
constexpr char kTakeOp[] = "ApplyAccumulated";
// A step that is half taken at so many looks stays so.
constexpr int kHalfLooksMax = 3;
// A client that starts at a finished run waits so long for the chief of the next one.
constexpr auto kNextRunMax = std::chrono::seconds(10);

Tensor number(int64_t value) {
  Tensor tensor(DType::kInt64, Shape());
  tensor.as<int64_t>()[0] = value;
  return tensor;
}

std::string listed(const std::vector<std::string>& names) {
  constexpr size_t kNamedMax = 3;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kNamedMax); ++i)
    text += (i == 0 ? "'" : ", '") + names[i] + "'";
  if (names.size() > kNamedMax) text += fmt::format(" and {} more", names.size() - kNamedMax);
  return text;
}

}  // namespace

// Any text of the folder is the same for all clients of a run, on whichever host they are; "run/"
// is "run".
int64_t GraphSupervisor::runNumber() const {
  std::filesystem::path folder = options_.log_dir.lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : folder.string())
    hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
  return static_cast<int64_t>(hash >> 2) + 1;
}

bool GraphSupervisor::isOwn(int64_t mark) const {
  if (!options_.is_chief && options_.log_dir.empty()) return mark != 0;
  return mark == runNumber() || mark == -runNumber();
}

int64_t GraphSupervisor::readyValue() {
  if (!ready_session_->uninitialized().empty()) return 0;
  const std::vector<std::string> fetches = {kReadyVariable};
  return ready_session_->run({}, fetches)[0].as<int64_t>()[0];
}

void GraphSupervisor::setReady(int64_t value) {
  if (ready_session_ != nullptr) ready_session_->setVariable(kReadyVariable, number(value));
}

// The variables come first: the chief sets the mark to 0 before it sets any of them, so a mark that
// is read afterwards is of these values.
bool GraphSupervisor::tryReady(std::string& missing, Duration waited) {
  const std::vector<std::string> without = session()->uninitialized();
  const int64_t mark = is_local_ ? 0 : readyValue();
  const bool is_there = without.empty() && isOwn(mark);
  if (is_there && mark > 0) {
    if (!options_.is_chief || isWhole()) return true;
    // Another client may be about to complete it.
    missing = fmt::format("waiting for all variables to take step {}", half_.step);
    if (++half_.looks < kHalfLooksMax && waited + options_.poll_every < options_.wait_max)
      return false;
    log::warning("event=step_incomplete task={} step={} next=\"the last checkpoint\"",
                 options_.task, half_.step);
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
  if (mark != 0 && !isOwn(mark))
    missing += "; the tasks have the model of another log_dir than " + options_.log_dir.string();
  return false;
}

// The global step counts first, then each variable takes the step. While clients train, the values
// differ in passing, but a variable that stays behind stops the global step.
bool GraphSupervisor::isWhole() {
  std::vector<std::string> fetches = {options_.saver.global_step};
  for (const graph::Node& node : graph_->nodes()) {
    if (node.op != kTakeOp) continue;
    DTF_CHECK_MSG(node.inputs.size() >= 3, node.name);
    const graph::Node& decider = graph_->node(node.inputs.back().node);
    if (decider.op == graph::kArriveOp &&
        graph_->node(decider.inputs.at(0).node).name == options_.saver.global_step)
      fetches.push_back(graph_->node(node.inputs[node.inputs.size() - 2].node).name);
  }
  if (fetches.size() == 1) return true;
  const Values values = session()->run({}, fetches);
  const int64_t step = values[0].as<int64_t>()[0];
  const bool is_even = std::all_of(values.begin(), values.end(), [&](const Tensor& version) {
    return version.as<int64_t>()[0] == step;
  });
  const bool has_moved = half_.looks > 0 && step != half_.step;
  half_.step = step;
  if (is_even || has_moved) half_.looks = 0;
  return is_even || has_moved;
}

void GraphSupervisor::noteFinished() {
  if (!shouldStop())
    log::info("event=run_finished task={} by={} log_dir={}", options_.task, options_.chief,
              options_.log_dir.string());
  requestStop();
}

// The chief's stop() makes steps of others fail: those that wait, and later ones.
bool GraphSupervisor::isFinished(const Error& error) {
  const bool may_be = error.code() == ErrorCode::kOutOfRange ||
                      error.code() == ErrorCode::kUnavailable ||
                      error.code() == ErrorCode::kDeadline;
  if (options_.is_chief || is_local_ || !may_be) return false;
  try {
    const int64_t mark = readyValue();
    if (mark >= 0 || !isOwn(mark)) return false;
  } catch (const Error&) {  // a lost task: recover() looks again
    return false;
  }
  noteFinished();
  return true;
}

void GraphSupervisor::initialiseModel() {
  half_.looks = 0;
  setReady(0);
  const std::shared_ptr<Session> of = session();
  if (saver_.latest(checkpoints())) {
    last_.saved_step = static_cast<int64_t>(saver_.restore(*of, checkpoints()));
  } else {
    of->initialize(options_.seed);
    last_.saved_step = -1;
  }
  DTF_FAILPOINT("supervisor.after_initialise");
  setReady(runNumber());
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

}  // namespace dtf::train
