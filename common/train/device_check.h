#pragma once

// Whether the tasks of this host have the devices that the file gives them.

#include "common/train/job_check.h"

namespace dtf::train {

// A mistake for each device that `host` lacks, at the line of the task. Those of other hosts are not
// looked at, nor those of a task whose `env` decides what it finds (CUDA_VISIBLE_DEVICES): the tasks say so.
void checkDevices(const cluster::JobSpec& job, const Host& host, yaml::Report& report);

}  // namespace dtf::train
