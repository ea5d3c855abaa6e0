#pragma once

// The trained model of a job whose chief was on another host: whether it is brought here at the
// end, and what a person is told where that came to nothing.

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/cluster/spec.h"

namespace dtf::launcher {

// Of a job that has ended well; `outcome`: as summary.json has it. Not while Slurm waits for a job
// to be gone: that time is for saving.
bool wantsModel(const cluster::LaunchSpec& launch, std::string_view outcome);

// A warning: why the checkpoint of `step`, of a job with that `outcome`, is not here, where it is,
// and what to do.
std::string noModelText(const cluster::JobSpec& job, std::string_view outcome, uint64_t step,
                        const Error& error);

}  // namespace dtf::launcher
