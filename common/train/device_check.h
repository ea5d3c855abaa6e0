#pragma once

// Whether there are the devices that the file gives to tasks, or names in a model's `graph`.

#include <cstddef>

#include "common/model/model_graph.h"
#include "common/train/job_check.h"

namespace dtf::train {

// A mistake for each device that `host` lacks, at the line of the task. Those of other hosts are
// not looked at, nor those of a task whose `env` decides what it finds (CUDA_VISIBLE_DEVICES): the
// tasks say so.
void checkDevices(const cluster::JobSpec& job, const Host& host, yaml::Report& report);

// A mistake for each variable that names a ps beyond the `ps_tasks` of the cluster, at the line of
// its op. Without any ps all variables are in the process that trains, whatever they name. False:
// there are mistakes.
bool checkVariableDevices(const model::ModelGraph& model, size_t ps_tasks, yaml::Report& report);

}  // namespace dtf::train
