#pragma once

// The status of running tasks, for a caller that is no task of the job: PsGate.status,
// WorkerGate.status and, for tasks that serve, TaskGate.status.

#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/cluster/address.h"
#include "common/net/credentials.h"

namespace dtf::wire {

struct ListeningTask {
  TaskId task;
  cluster::Address address;
};

// Requests the status of all tasks at once. Returns the JSON of each (common/host/ps_service.cc,
// daemons/workerd/worker_gate.cc, common/serving/part_server.cc) in the order of `tasks`; nullopt
// for a task that isn't there, isn't of dtf, or has not replied in time.
// Blocks: for `patience`, and longer while the resolver looks up the name of a host.
// Errors: kUnavailable if this process has no descriptor left.
std::vector<std::optional<std::string>> askStatus(const std::vector<ListeningTask>& tasks,
                                                  Duration patience,
                                                  const net::Credentials& credentials);

}  // namespace dtf::wire
