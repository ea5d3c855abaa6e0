#pragma once

// The verbs for a job with `launch: {via: systemd}`.

#include <filesystem>

#include "common/cluster/spec.h"
#include "launcher/launch_plan.h"
#include "launcher/options.h"
#include "launcher/systemd/unit_job.h"

namespace dtf::launcher {

// `up`: writes and starts the job's units, and follows them to the end; with --detach until all are
// ready. A dtf-launch that is killed leaves them to systemd. With --dry-run prints them. Returns the
// exit code of the process.
// Blocks: until the job has ended.
// Errors: those of UnitJob and RunFolder, before anything runs.
int upAsUnits(const cluster::JobSpec& job, const Options& options, const PlanInput& input,
              const UnitStart& start);

// `stop`: has systemd stop the job's units, waits until they have ended, and removes them. False: the
// job has none that run. `run_dir` is the run's.
// Errors: kDeadline; kUnavailable when they are another run's; those of UnitJob.
bool stopUnits(const cluster::JobSpec& job, const std::filesystem::path& run_dir);

// `attach`: shows the job's units until they have ended. False: it has none that run.
// Errors: kUnavailable when they are another run's; those of UnitJob.
bool showUnits(cluster::JobSpec job, const Options& options, const std::filesystem::path& run_dir);

}  // namespace dtf::launcher
