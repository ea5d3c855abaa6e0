#pragma once

// What the states of a job's units mean for the job. Pure.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/systemd/service_control.h"
#include "launcher/task_monitor.h"

namespace dtf::launcher {

// The `result` of a unit that was there and isn't any more, while others run: nobody removes those.
inline constexpr std::string_view kGone = "gone";
// Marks them as failed. `seen`: of which units there was a file before; what is seen now is added.
void markGone(std::vector<UnitState>& units, std::vector<bool>& seen);

// Each is ready, or has ended.
bool allUp(const std::vector<UnitState>& units);
// None runs, nor will be started again.
bool allEnded(const std::vector<UnitState>& units);

// Of the units that have failed for good, the one that did so first. One that was told to end (exit
// code 130 or 143) doesn't count; with `even_derived`, one that may have failed only because
// another did (exit code 69 or 124, or the chief said so) counts where there is no other.
std::optional<size_t> firstFailed(const std::vector<UnitState>& units, bool even_derived);

// Returns whether the job is done by end_of_job.h's verdict although its chief was killed: all
// others had ended with 0, or the chief had reported its result and systemd does not start it
// again. `tasks`: whose units these are.
bool hasChiefEnded(const std::vector<UnitState>& units, const std::vector<TaskId>& tasks);

// "was killed by SIGKILL (signal 9), for the 11th time"; empty for one that has ended well.
std::string unitCause(const UnitState& unit);

// Of the unit `task`, which has failed.
RootCause unitRootCause(const UnitState& unit, size_t task, const std::string& name);

// How a job of units ended. Value type.
struct UnitsEnd {
  Outcome outcome = Outcome::kFailed;
  int exit_code = 1;
};
// `said`: the outcome of the chief's summary, empty without one; `signal`: by which a person asked
// dtf-launch to stop, or 0; `chief_ended`: see hasChiefEnded(). A job that has its result is done,
// whatever came after.
UnitsEnd endOfUnits(const std::string& said, const std::optional<RootCause>& root, int signal,
                    bool chief_ended = false);

}  // namespace dtf::launcher
