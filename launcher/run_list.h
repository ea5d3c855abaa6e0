#pragma once

// The runs of a user: which there are, and which one a word names.

#include <filesystem>
#include <string>
#include <vector>

#include "launcher/run_facts.h"

namespace dtf::launcher {

// Returns the runs in `folders`, newest first: each folder that is a run, and the runs directly in
// it or in its sub-folder `runs`. Without folders: the runs in the registries of this user
// (common/base/run_registry.h), and those of the current folder.
// Blocks: on the disk.
// Errors: kUsage for a folder that doesn't exist.
std::vector<RunFacts> listRuns(const std::vector<std::filesystem::path>& folders);

// Returns the run that `name` means: the path of a run directory, the name of a job, its beginning,
// or the beginning of an id. A whole name of a job wins over beginnings.
// Blocks: on the disk.
// Errors: kUsage, listing the candidates where there are several.
RunFacts runNamed(const std::string& name);

}  // namespace dtf::launcher
