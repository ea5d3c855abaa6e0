#include "common/base/failpoint.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"

namespace dtf {

namespace {

// In the order of a job: checkpoints, training, recovery from the loss of a ps, shards that move to
// the chief or back, the end of a job, first for the chief, then for every worker; then a program
// of one's own under a supervisor, a step of its session, and synchronous replicas on a ps.
constexpr auto kNames = std::to_array<std::string_view>({
    "checkpoint.after_make_attempt",
    "checkpoint.after_shard_create",
    "checkpoint.in_shard_write",
    "checkpoint.after_shard_write",
    "checkpoint.after_shard_sync",
    "checkpoint.after_shard_close",
    "stay.after_shard",
    "checkpoint.after_check_shards",
    "checkpoint.after_manifest_create",
    "checkpoint.after_manifest_write",
    "checkpoint.after_manifest_sync",
    "checkpoint.after_attempt_sync",
    "checkpoint.after_rename",
    "checkpoint.after_parent_sync",
    "checkpoint.after_trash_rename",
    "stay.after_drop",
    "checkpoint.after_trash_removal",
    "training.after_initialise",
    "training.in_read",
    "training.in_step",
    "training.in_send",
    "training.in_evaluation",
    "training.in_summary",
    "training.in_short_batch",
    "recovery.before_commit",
    "recovery.ps_has_committed",
    "recovery.after_commit",
    "recovery.after_refill",
    "gather.after_stage",
    "gather.before_piece",
    "gather.before_take",
    "ending.in_last_evaluation",
    "ending.after_result",
    "ending.before_finish",
    "ending.after_finish",
    "supervisor.before_open",
    "supervisor.after_open",
    "supervisor.after_initialise",
    "supervisor.after_ready",
    "supervisor.before_step",
    "supervisor.after_step",
    "supervisor.before_save",
    "supervisor.after_save",
    "supervisor.before_summary",
    "supervisor.after_summary",
    "supervisor.before_stop",
    "supervisor.after_last_save",
    "supervisor.after_finished",
    "supervisor.after_finish",
    "session.before_send",
    "session.between_tasks",
    "session.after_send",
    "session.after_reply",
    "session.after_step",
    "serving.after_set",
    "serving.before_reply",
    "replicas.before_accumulate",
    "replicas.after_accumulate",
    "replicas.before_decide",
    "replicas.after_decide",
    "replicas.before_take",
    "replicas.in_take",
    "replicas.after_take",
    "replicas.after_finish",
});

enum class Action { kKill, kTerm, kStop, kSleep, kError };

struct Point {
  Action action = Action::kKill;
  uint64_t sleep_ms = 0;
  uint64_t hit = 0;  // 0: at every passage
  std::atomic<uint64_t> hits{0};
};

using Plan = std::map<std::string, Point, std::less<>>;

[[noreturn]] void failUsage(std::string_view item, const std::string& why) {
  throw Error(ErrorCode::kUsage, "DTF_FAILPOINTS: '" + std::string(item) + "': " + why);
}

uint64_t number(std::string_view item, const std::string& text) {
  if (text.empty() || text.size() > 9 || text.find_first_not_of("0123456789") != std::string::npos)
    failUsage(item, "'" + text + "' is not a number");
  return std::stoull(text);
}

void parsePoint(const std::string& item, Plan& plan) {
  const size_t equals = item.find('=');
  if (equals == std::string::npos) failUsage(item, "write NAME=ACTION");
  const std::string name = item.substr(0, equals);
  if (std::find(kNames.begin(), kNames.end(), name) == kNames.end()) {
    const std::string nearest = nearestWord(name, kNames);
    failUsage(item, "there is no such point" +
                        (nearest.empty() ? std::string() : "; did you mean " + nearest + "?"));
  }
  std::string action = item.substr(equals + 1);
  Point& point = plan[name];
  if (const size_t at = action.find('@'); at != std::string::npos) {
    point.hit = number(item, action.substr(at + 1));
    action.resize(at);
  }
  if (action == "kill")
    point.action = Action::kKill;
  else if (action == "term")
    point.action = Action::kTerm;
  else if (action == "stop")
    point.action = Action::kStop;
  else if (action == "error")
    point.action = Action::kError;
  else if (action.starts_with("sleep:")) {
    point.action = Action::kSleep;
    point.sleep_ms = number(item, action.substr(6));
  } else
    failUsage(item, "the action is kill, term, stop, sleep:MS or error");
}

Plan planFromEnvironment() {
  Plan plan;
  const char* text = std::getenv("DTF_FAILPOINTS");
  if (text == nullptr) return plan;
  for (const std::string& item : split(text, ';'))
    if (!item.empty()) parsePoint(item, plan);
  return plan;
}

}  // namespace

std::span<const std::string_view> failpointNames() {
  return kNames;
}

void failpoint(std::string_view name) {
  DTF_CHECK_MSG(std::find(kNames.begin(), kNames.end(), name) != kNames.end(), std::string(name));
  static Plan plan = planFromEnvironment();
  const auto found = plan.find(name);
  if (found == plan.end()) return;
  Point& point = found->second;
  const uint64_t hit = ++point.hits;
  if (point.hit != 0 && point.hit != hit) return;
  switch (point.action) {
    case Action::kKill:
      ::kill(::getpid(), SIGKILL);
      ::pause();
      return;
    case Action::kTerm:
      ::kill(::getpid(), SIGTERM);
      return;
    case Action::kStop:
      ::kill(::getpid(), SIGSTOP);
      return;
    case Action::kSleep:
      std::this_thread::sleep_for(std::chrono::milliseconds(point.sleep_ms));
      return;
    case Action::kError:
      throw Error(ErrorCode::kCannotWrite, "failpoint " + std::string(name) + ": asked to fail");
  }
}

}  // namespace dtf
