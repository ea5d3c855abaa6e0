#pragma once

// What running tasks say of themselves to somebody who is none: PsGate.status, WorkerGate.status,
// and of those that serve TaskGate.status.

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

// The JSON that each answers (common/host/ps_service.cc, daemons/workerd/worker_gate.cc,
// daemons/part_server.cc), in the order of `tasks`; nullopt where none came in time. All are asked
// at once.
// Blocks: `patience`, and longer while the resolver looks for the name of a host.
// Errors: kUnavailable when this process has no descriptor left; who is not there, or is something
// else, doesn't answer.
std::vector<std::optional<std::string>> askStatus(const std::vector<ListeningTask>& tasks,
                                                  Duration patience,
                                                  const net::Credentials& credentials);

}  // namespace dtf::wire
