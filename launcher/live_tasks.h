#pragma once

// The tasks of a running job, asked what they do: they know who is awaited, and a job by hand has
// no launcher that writes status.json.

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "common/base/json.h"
#include "common/base/run_lock.h"
#include "common/cluster/spec.h"
#include "common/net/credentials.h"
#include "launcher/notice.h"

namespace dtf::launcher {

// A task of a job that runs. Value type.
struct LiveTask {
  std::string name;
  pid_t pid = 0;            // 0: not known
  Json answer;              // to our question; null: none came
  int64_t start_ticks = 0;  // of its process; 0: not known
  std::string host{};       // of the pid, where it is another one than this
};

// Those of the cluster file, and who else is in `record`, which another file, or --set, has
// started.
// Blocks: a second, for tasks that don't answer; longer while the resolver looks for a host's name.
// Errors: those of wire::askStatus().
std::vector<LiveTask> askTasks(const cluster::ClusterSpec& cluster, const LaunchRecord& record,
                               const net::Credentials& credentials);

// The same where no run is known: the tasks at the ports of the file that answer for this very job.
// Empty when none does.
std::vector<LiveTask> askUnknownRun(const cluster::JobSpec& job,
                                    const net::Credentials& credentials);

// As status.json has it (live_status.h), of a job that no dtf-launch writes one for: what the
// worker says that is the furthest. Null before the first report.
Json progressOf(const std::vector<LiveTask>& tasks);

// Returns the worker that the others wait for, which only the host of the first shard knows, or
// that of `live`, the last progress, if that host doesn't answer; nullopt: none.
std::optional<StragglerNotice> stragglerNow(const cluster::ClusterSpec& cluster, const Json& live,
                                            const std::vector<LiveTask>& tasks);

}  // namespace dtf::launcher
