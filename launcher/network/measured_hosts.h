#pragma once

// Has the hosts of a job measure the network between them, before any task runs.

#include <vector>

#include "common/cluster/spec.h"
#include "launcher/commands.h"
#include "launcher/network/measurement.h"
#include "launcher/network/network_check.h"
#include "launcher/options.h"

namespace dtf::launcher {

// Returns what `scope` measures, of the hosts in the file's order: by their agents where the tasks
// run there, else from here.
// Blocks: as NetworkCheck::run() and SshProbes::connect(). Prints its progress unless `quiet`.
// Errors: kUnavailable, kPermission or kBadConfig for a host that can't be used.
std::vector<NetworkRow> measureHosts(const cluster::JobSpec& job, const Options& options,
                                     const Origin& origin, NetworkScope scope, bool quiet);

}  // namespace dtf::launcher
