#pragma once

// Checks that the devices exist which the cluster file gives to tasks or a model's `graph` names.

#include <cstddef>

#include "common/model/model_graph.h"
#include "common/train/job_check.h"

namespace dtf::train {

// Reports each device that `host` lacks, at the line of its task. Skips tasks on other hosts, and
// tasks whose `env` affects which devices they find (CUDA_VISIBLE_DEVICES): these check their
// devices when they start.
void checkDevices(const cluster::JobSpec& job, const Host& host, yaml::Report& report);

// Reports each variable that names a ps beyond those of the cluster, or beyond its workers where
// these host the shards, and an op on /cpu:0 if a worker computes elsewhere, at the line of the op,
// and then returns false. In a job of one process all variables are there, whatever they name.
bool checkModelDevices(const model::ModelGraph& model, const cluster::ClusterSpec& cluster,
                       yaml::Report& report);

}  // namespace dtf::train
