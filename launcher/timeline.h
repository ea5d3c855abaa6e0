#pragma once

// The timeline of a job: what its tasks recorded of one step (common/base/trace.h), in one file.

#include <cstddef>
#include <filesystem>
#include <vector>

#include "common/base/ids.h"

namespace dtf::launcher {

// Removes what an earlier run left, so that timeline.json is always of the last launch.
// Errors: none; what can't be removed is replaced later or stays.
void removeTimelines(const std::filesystem::path& run_dir, const std::vector<TaskId>& tasks);

// <run_dir>/timeline/*.json of `tasks` as <run_dir>/timeline.json. Returns of how many tasks; one
// that did not end well has left none. 0: nothing is written.
// Errors: kCannotWrite; kBadData for a file that is no trace.
size_t mergeTimelines(const std::filesystem::path& run_dir, const std::vector<TaskId>& tasks);

}  // namespace dtf::launcher
