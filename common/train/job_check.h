#pragma once

// Everything that can be known to be wrong with a job before one of its processes starts: a train
// section that is missing, layers that don't fit each other, pins of variables that don't exist,
// data files that are missing, damaged or of another shape, more parameters than the host can hold.
// dtf-launch asks it; the tasks go on checking what they are given.

#include <functional>
#include <optional>

#include "common/base/host_memory.h"
#include "common/cluster/spec.h"
#include "common/train/job_size.h"
#include "common/yaml/report.h"

namespace dtf::train {

// Value type.
struct Host {
  HostMemory memory;
  std::function<bool(const cluster::Address&)> runs;  // the task of that address; empty: every task
  // Why it lacks a device, such as "gpu:0"; empty text where it has it. Empty: not asked.
  std::function<std::string(const std::string& device)> missing;
};

// Puts all mistakes of `job` into `report`, which loaded it, each at the line that is to be
// changed, and warnings for what is allowed and hardly meant. nullopt: there is no model to count.
// `host` is where it is asked: tasks elsewhere don't count against its memory, and data that only
// they read may be missing here, which is a warning.
// Blocks: on the headers of the data files and the labels: about a millisecond for MNIST.
std::optional<JobSize> checkJob(const cluster::JobSpec& job, const Host& host,
                                yaml::Report& report);

}  // namespace dtf::train
