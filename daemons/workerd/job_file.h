#pragma once

#include <filesystem>

#include "common/arena/model_declaration.h"
#include "common/cluster/spec.h"
#include "daemons/workerd/job_data.h"

namespace dtf::workerd {

// Writes <run_dir>/job.yaml, so that a run says later which job it was: the version of dtf, the
// fingerprints of the data, all settings that the tasks compare, and the file as it was understood.
// A file that can't be written is logged, and costs the job nothing.
// Blocks: on the disk, and reads the evaluation data once.
void writeJobFile(const cluster::JobSpec& job, const JobData& data,
                  const arena::ModelDeclaration& declaration);

}  // namespace dtf::workerd
