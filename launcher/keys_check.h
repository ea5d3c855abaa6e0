#pragma once

// Whether the keys that a job names are there and good for its tasks, before one is started.

#include <functional>

#include "common/cluster/spec.h"
#include "common/yaml/mark.h"
#include "common/yaml/report.h"

namespace dtf::launcher {

// Puts what is wrong with the folder of `job`'s keys into `report`, which loaded it, at `named`,
// where the file names the folder: it is missing, a task has no key, a key is another job's or
// another task's, has expired, or may not be read. Each key is opened as its task will. Over ssh
// and by Slurm they are all sent from here; else a task that `runs_here` says no of has its key on
// its own host.
// Blocks: on the files, a few KiB for each task.
void checkKeys(const cluster::JobSpec& job, const yaml::Mark& named,
               const std::function<bool(const cluster::Address&)>& runs_here, yaml::Report& report);

}  // namespace dtf::launcher
