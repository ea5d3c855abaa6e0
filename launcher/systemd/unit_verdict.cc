#include "launcher/systemd/unit_verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/service_manager.h"
#include "launcher/end_of_job.h"

namespace dtf::launcher {

namespace {

bool isCode(const UnitState& unit, std::initializer_list<int> codes) {
  return unit.exit.signal == 0 &&
         std::find(codes.begin(), codes.end(), unit.exit.code) != codes.end();
}

bool mayBeDerived(const UnitState& unit) {
  const std::optional<FailedStatus> said = readFailedStatus(unit.status);
  return isCode(unit, {exitCode(ErrorCode::kUnavailable), exitCode(ErrorCode::kDeadline)}) ||
         (said && said->job_ended);
}

}  // namespace

void markGone(std::vector<UnitState>& units, std::vector<bool>& seen) {
  DTF_CHECK(units.size() == seen.size());
  const bool any_runs = !allEnded(units);
  for (size_t i = 0; i < units.size(); ++i) {
    UnitState& unit = units[i];
    if (!unit.file.empty()) seen[i] = true;
    if (!any_runs || !seen[i] || !unit.file.empty() || unit.isAlive()) continue;
    unit.active = "failed";
    unit.result = kGone;
  }
}

bool allUp(const std::vector<UnitState>& units) {
  return std::none_of(units.begin(), units.end(),
                      [](const UnitState& unit) { return unit.isAlive() && !unit.isUp(); });
}

bool allEnded(const std::vector<UnitState>& units) {
  return std::none_of(units.begin(), units.end(),
                      [](const UnitState& unit) { return unit.isAlive(); });
}

std::optional<size_t> firstFailed(const std::vector<UnitState>& units, bool even_derived) {
  std::optional<size_t> first;
  for (const bool derived : {false, true}) {
    for (size_t i = 0; i < units.size(); ++i) {
      const UnitState& unit = units[i];
      if (!unit.hasFailed() || isCode(unit, {128 + SIGINT, 128 + SIGTERM})) continue;
      if (mayBeDerived(unit) != derived) continue;
      if (!first || unit.ended_usec < units[*first].ended_usec) first = i;
    }
    if (first || !even_derived) return first;
  }
  return first;
}

bool hasChiefEnded(const std::vector<UnitState>& units, const std::vector<TaskId>& tasks) {
  DTF_CHECK(units.size() == tasks.size());
  std::vector<TaskFacts> facts;
  std::optional<size_t> chief;
  for (size_t i = 0; i < units.size(); ++i) {
    const UnitState& unit = units[i];
    const bool has_ended = !unit.isAlive() && unit.ended_usec > 0;
    const TaskState state = unit.isUp()      ? TaskState::kReady
                            : unit.isAlive() ? TaskState::kStarting
                            : has_ended && !unit.hasFailed() && unit.exit.success()
                                ? TaskState::kDone
                                : TaskState::kFailed;
    facts.push_back({tasks[i], state});
    if (tasks[i] == kChief) chief = i;
  }
  // How its last process ended, while the next one is on its way or after that was given up.
  if (!chief || units[*chief].isUp() || units[*chief].exit.signal == 0) return false;
  const UnitState& unit = units[*chief];
  const bool said_why = readFailedStatus(unit.status).has_value();
  // A process that systemd starts behind the result ends by itself, with that result.
  const JobPhase phase{.has_result = isResultStatus(unit.status) && !unit.isAlive()};
  return verdict(facts, phase, *chief, {unit.exit, said_why}) == Verdict::kDone;
}

std::string unitCause(const UnitState& unit) {
  if (!unit.hasFailed()) return "";
  if (unit.result == kGone) return "is gone with its unit: its host or its systemd was restarted";
  if (unit.result == "watchdog") return "hung: the watchdog of systemd killed it";
  if (unit.result == "timeout") return "did not start or stop within the time limit of its unit";
  if (unit.result == "protocol") return "ended before it was ready";
  if (unit.result == "oom-kill")
    return unit.exit.text() +
           ": the kernel had killed a process of the unit for lack of memory, see dmesg and "
           "MemoryMax= "
           "of its slice";
  std::string text = unit.exit.success() ? "failed (" + unit.result + ")" : unit.exit.text();
  if (unit.result == "start-limit-hit")
    text += fmt::format(", and was started again {} times, as often as launch.restarts allows",
                        unit.restarts);
  return text;
}

RootCause unitRootCause(const UnitState& unit, size_t task, const std::string& name) {
  DTF_CHECK_MSG(unit.hasFailed(), unit.name);
  RootCause root{task, name + " " + unitCause(unit), "", 1};
  if (const auto said = readFailedStatus(unit.status)) root.message = said->message;
  if (!unit.exit.success()) root.exit_code = unit.exit.shellCode();
  if (unit.result == kGone) root.exit_code = exitCode(ErrorCode::kUnavailable);
  return root;
}

UnitsEnd endOfUnits(const std::string& said, const std::optional<RootCause>& root, int signal,
                    bool chief_ended) {
  if (chief_ended || said == outcomeName(Outcome::kDone)) return {Outcome::kDone, 0};
  if (root) return {Outcome::kFailed, root->exit_code};
  if (said == outcomeName(Outcome::kStopped))
    return {Outcome::kStopped, signal == 0 || signal == SIGTERM ? 0 : 128 + signal};
  if (signal != 0 || said == outcomeName(Outcome::kInterrupted))
    return {Outcome::kInterrupted, 128 + (signal != 0 ? signal : SIGTERM)};
  return {Outcome::kFailed, exitCode(ErrorCode::kUnavailable)};
}

}  // namespace dtf::launcher
