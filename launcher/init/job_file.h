#pragma once

// From data to a job's file that trains on them.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "launcher/init/dataset_profile.h"
#include "launcher/init/job_draft.h"

namespace dtf::launcher {

// Value type.
struct JobFile {
  std::string text;
  std::vector<std::string> findings;  // about the data, a line each
  std::vector<std::string> commands;  // to go on with
};

// Looks at a table in text, an archive or an array of NumPy, or a folder of images, told apart by
// their contents. `target`: the column or the array to learn; `features`: the array to learn from.
// Blocks: on the disk, for as long as reading all of it takes.
// Errors: kUsage for an option that the data have no use for; kBadData for data of another kind,
// with the kinds that are read; those of the profiles.
DatasetProfile profileData(const std::filesystem::path& path,
                           const std::optional<std::string>& target,
                           const std::optional<std::string>& features);

// `divides` false: no example is left for an evaluation, unless the data have some beside those to
// train on. A pure function of all.
JobFile describe(const DatasetProfile& profile, const JobPlace& place, bool divides = true);

}  // namespace dtf::launcher
