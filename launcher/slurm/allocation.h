#pragma once

// The nodes that Slurm has given to the job that this process belongs to, and which tasks run
// there.

#include <string>
#include <string_view>
#include <vector>

#include "common/cluster/spec.h"

namespace dtf::launcher {

// The nodes of the allocation, in Slurm's order.
// Blocks: on scontrol, 10 s at most.
// Errors: kUsage: there is no allocation; those of runProgram(); kUnavailable with scontrol's
// words.
std::vector<std::string> allocatedNodes();

// Where the tasks would be that the file only counts, when nothing is allocated yet:
// "slurm-node-0.invalid".
std::vector<std::string> nodesToCome(const cluster::SlurmSpec& slurm);
bool isNodeToCome(std::string_view host);  // one of those: nobody need look for it

// Gives the tasks that the file only counts their hosts: those of either kind go to the nodes in
// turn, from the first, so that worker/0 is where a batch script runs. Those that name a node have
// it as Slurm spells it.
void placeOnNodes(cluster::JobSpec& job, const std::vector<std::string>& nodes);

// Errors: kBadConfig for a task whose address names another host than these nodes, or fewer nodes
// than the file wants.
void checkNodes(const cluster::JobSpec& job, const std::vector<std::string>& nodes);

}  // namespace dtf::launcher
