#pragma once

// Slurm's srun in the place of an ssh client: how it is called, and what its last words mean. Pure.

#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "launcher/exit_status.h"

namespace dtf::launcher {

// One job step with one process, `agent`, on the node, beside whatever else runs in the allocation,
// with all that the allocation has there. Its stdin and stdout are the agent's.
std::vector<std::string> srunCommand(const std::string& node, const std::string& agent);

// How the step on `node` ended, in words for a person. `said`: the last of its stderr.
Error srunError(const std::string& node, const std::string& agent, const ExitStatus& status,
                std::string_view said);

}  // namespace dtf::launcher
