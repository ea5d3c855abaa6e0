#pragma once

// The units of a job with `launch: {via: systemd}`: one service a task. Pure: --dry-run shows what
// would be written.

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "common/base/ids.h"
#include "common/cluster/spec.h"
#include "launcher/launch_plan.h"

namespace dtf::launcher {

// "dtf-mnist@ps-0.service": an instance, so that 'dtf-mnist@*' are all tasks of the job.
std::string unitName(const std::string& job, TaskId id);

// `word` as one word of a line of a unit, in quotes: nothing in it is a specifier or an escape.
std::string unitWord(std::string_view word);

// What a unit needs beside its task's command. Value type.
struct UnitSettings {
  std::map<std::string, std::string> env;  // of dtf-launch, that the task keeps (keptEnvironment())
  std::filesystem::path log;               // absolute: stdout and stderr of all its processes
};

// A line of each unit of a run, of which this is the absolute folder of logs: whose the units of
// that name are.
std::string runLine(const std::filesystem::path& logs);

// Of dtf-launch's own environment what a unit is given too: where home, caches and the registry of
// runs are, and what decides how it computes. The rest is systemd's own, as for any unit.
std::map<std::string, std::string> keptEnvironment();

// The file of the unit. systemd starts the task again, out of the budget of launch.restarts.
// Errors: kBadConfig for a folder whose name can't stand in a unit.
std::string unitText(const cluster::JobSpec& job, const TaskCommand& command,
                     const UnitSettings& settings);

}  // namespace dtf::launcher
