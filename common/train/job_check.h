#pragma once

// Checks a job before any of its processes starts. It finds a missing train section, layers that
// don't fit each other, pins of unknown variables, data files that are missing, damaged or of
// another shape, and more parameters than the host can hold. dtf-launch calls it; the tasks check
// their own input all the same.

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
  std::function<bool(const cluster::Address&)> runs;  // whether it runs that task; empty: all
  // Returns why the host lacks a device, such as "gpu:0"; an empty text if it has it. Empty:
  // devices are not checked.
  std::function<std::string(const std::string& device)> missing;
};

// Adds all mistakes of `job` to `report`, which loaded it, each at the line to change, and warnings
// for settings that are allowed but hardly intended. Returns nullopt if the size of the model is
// unknown. `host` is this host: tasks elsewhere don't count against its memory. Data that only they
// read may be missing here, which is a warning.
// Blocks: on reading the headers of the data files and the labels: about a millisecond for MNIST.
std::optional<JobSize> checkJob(const cluster::JobSpec& job, const Host& host,
                                yaml::Report& report);

}  // namespace dtf::train
