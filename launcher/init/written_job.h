#pragma once

// A job's file of init, read back before it is written.

#include <functional>
#include <string>

#include "launcher/init/job_draft.h"
#include "launcher/init/job_file.h"

namespace dtf::launcher {

// Returns the mistakes that `dtf-launch check` would find in `text`, were it the file of `place`,
// and in its data; empty: none. Of data above 256 MiB, and of folders of images, it reads the
// beginnings alone.
// Blocks: on the disk, for as long as reading the data takes.
// Errors: those of readers for what is no mistake: kPermission, kCannotWrite, kUnavailable.
std::string mistakesIn(const std::string& text, const JobPlace& place);

// Returns make(true), a job that evaluates a share of its examples, or where `check` would refuse
// that, make(false), which trains on all: some examples can't be divided.
// Blocks: likewise.
// Errors: likewise; kBadData for a file that is longer than dtf reads; kInternal with the mistakes
// where both are refused.
JobFile checkedJob(const JobPlace& place, const std::function<JobFile(bool divides)>& make);

}  // namespace dtf::launcher
