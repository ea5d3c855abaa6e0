#pragma once

// `placement: auto`, replaced by a placement that is written out before anybody else reads the job:
// the tasks, and all of dtf-launch behind main(), know no `auto`.

#include <optional>
#include <string>

#include "common/cluster/spec.h"
#include "launcher/commands.h"
#include "launcher/options.h"
#include "launcher/placement/kept_placement.h"
#include "launcher/placement/placement_choice.h"

namespace dtf::launcher {

// Whether there is something to choose: a job of one process has one place.
bool choosesPlacement(const cluster::JobSpec& job);

// Returns the choice that the run directory keeps for this job; nullopt: none, or of a job with
// other hosts or another model.
// Errors: those of readPlacement().
std::optional<KeptPlacement> keptPlacement(const cluster::JobSpec& job);

// Measures the links between the job's hosts, and chooses. Prints the choice and its reason unless
// the options are quiet.
// Blocks: about a second, beside the connections to the hosts; NetworkCheck::kBriefAnswerWithin for
// each round in which a host does not answer. Errors: those of measureHosts(), linksOf() and
// choosePlacement(); kBadConfig at the key where dtf-launch reaches no other host.
KeptPlacement measurePlacement(const cluster::JobSpec& job, const Options& options,
                               const Origin& origin, const JobReader& read);

// `explain --measure`: prints the links, the options and the choice; keeps nothing.
int explainPlacement(const cluster::JobSpec& job, const Options& options, const Origin& origin,
                     const JobReader& read);

}  // namespace dtf::launcher
