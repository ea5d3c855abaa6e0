#include "launcher/monitor_limits.h"

#include <chrono>

#include "common/base/check.h"
#include "common/replication/replication_rules.h"

namespace dtf::launcher {

namespace {

// To end the processes, read their last words, write the summary and merge a timeline.
constexpr Duration kReport = std::chrono::seconds(10);

}  // namespace

MonitorLimits limitsOf(const cluster::JobSpec& job, bool serves) {
  const cluster::Timeouts& timeouts = job.timeouts;
  MonitorLimits limits;
  limits.serves = serves;
  // Longer than the chief's own patience: it says more about it.
  if (job.train && job.train->checkpoint) limits.save = fromSeconds(timeouts.stop_seconds + 1);
  limits.start = fromSeconds(timeouts.start_seconds);
  // The tasks wait finish_seconds themselves and can say more about it, so they speak first.
  limits.finish = fromSeconds(timeouts.finish_seconds + timeouts.lease_seconds);
  limits.lease = fromSeconds(timeouts.lease_seconds);
  limits.restarts.max = static_cast<uint32_t>(job.launch.restarts.max);
  limits.restarts.refill = fromSeconds(60 * job.launch.restarts.refill_minutes);
  limits.workers_host = job.cluster.workersHost();
  const auto workers = static_cast<uint32_t>(job.cluster.worker.size());
  if (job.train && workers > 0)
    limits.spares = replication::spareWorkers(
        replication::completeReplication(job.train->replication, workers));
  return limits;
}

// TaskMonitor: the chief saves; then SIGTERM, SIGKILL, and giving up.
Duration stopLimit(const cluster::JobSpec& job) {
  const MonitorLimits limits = limitsOf(job);
  DTF_CHECK(limits.save >= Duration{0} && limits.grace > Duration{0});
  return limits.save + 2 * limits.grace + kReport;
}

}  // namespace dtf::launcher
