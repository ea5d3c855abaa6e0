#pragma once

// libsvm files: their facts, and the job that init writes for them.

#include <filesystem>

#include "launcher/init/dataset_profile.h"
#include "launcher/init/job_draft.h"

namespace dtf::launcher {

// Whether a file's first lines, plain or packed, are those of a libsvm file.
// Blocks: on the disk, shortly. Errors: kBadData, kPermission.
bool isLibsvm(const std::filesystem::path& file);

// Blocks: on the disk. Errors: kBadData at the first record that can't be read, and where all
// labels are the same.
LibsvmProfile profileLibsvm(const std::filesystem::path& file);

JobDraft libsvmJob(const LibsvmProfile& profile, const JobPlace& place);

}  // namespace dtf::launcher
