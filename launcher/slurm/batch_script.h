#pragma once

// What `dtf-launch submit` gives to sbatch. Pure.

#include <string>
#include <vector>

#include "common/cluster/spec.h"

namespace dtf::launcher {

// A script of bash whose last command is `launch`. Before the time limit Slurm sends it a signal,
// early enough for timeouts.stop_seconds: the job saves and ends. With launch.requeue it then waits
// for another turn, as does one that has saved because Slurm preempts it.
std::string batchScript(const cluster::JobSpec& job, const std::vector<std::string>& launch);

}  // namespace dtf::launcher
