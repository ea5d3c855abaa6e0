#pragma once

// The job for a table in text.

#include "launcher/init/dataset_profile.h"
#include "launcher/init/job_draft.h"

namespace dtf::launcher {

// Numbers are scaled to mean 0 and variance 1, each column of words has an embedding, and hidden
// layers read both.
JobDraft tableJob(const TableProfile& profile, const JobPlace& place);

}  // namespace dtf::launcher
