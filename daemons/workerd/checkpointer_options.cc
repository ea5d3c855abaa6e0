#include "daemons/workerd/checkpointer_options.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/cluster/address.h"
#include "common/data/read_signature.h"

namespace dtf::workerd {

namespace {

// Returns whether a shard is on another host. Then the tasks may have different run directories.
bool hasShardElsewhere(const cluster::TaskOptions& task) {
  const auto hostOf = [](const cluster::TaskSpec& spec) {
    return cluster::hostKey(spec.address.host);
  };
  const std::string here = hostOf(task.job.cluster.worker.at(task.task.index));
  return std::ranges::any_of(task.job.cluster.hosts(),
                             [&](const cluster::TaskSpec& host) { return hostOf(host) != here; });
}

}  // namespace

bool isSupervised(const cluster::JobSpec& job) {
  return job.train->checkpoint || job.durability.kind != cluster::Durability::kCheckpoint;
}

train::CheckpointerOptions checkpointerOptions(const cluster::TaskOptions& task,
                                               std::function<std::vector<uint64_t>()> keeps_also) {
  const cluster::TrainSpec& train = task.job.train.value();
  // A process with its own parameters has its shard in memory.
  const bool apart = train.checkpoint && !task.job.cluster.isOneProcess();
  train::CheckpointerOptions options;
  options.job = task.job.job;
  options.run_dir = task.job.run_dir;
  options.incarnation = Incarnation::ofNow(task.attempt);
  options.workers = static_cast<uint32_t>(task.job.cluster.worker.size());
  options.spec = train.checkpoint;
  options.data = train.data;
  options.model = train.model;
  options.fresh = task.fresh;
  options.reached_step = task.reached_step;
  options.epochs = train.epochs;
  options.keeps_also = std::move(keeps_also);
  options.snapshots = task.job.durability.kind == cluster::Durability::kSnapshot;
  options.replicas = task.job.durability.kind == cluster::Durability::kReplica;
  options.signature = data::readSignature(train.data.train);
  options.gather = apart && train.checkpoint->gather;
  options.elsewhere = hasShardElsewhere(task);
  options.stay = apart && train.checkpoint->stay;
  options.hosts = task.job.cluster.shardHosts();
  for (const cluster::TaskSpec& host : task.job.cluster.hosts())
    options.ps_hosts.push_back(host.address.host);
  return options;
}

train::SaveSchedule saveScheduleOf(const cluster::JobSpec& job) {
  const cluster::Timeouts& timeouts = job.timeouts;
  // A save captures and writes, each for finish_seconds at most.
  return {job.train->checkpoint,
          job.durability.snapshot_every_steps,
          {.save = fromSeconds(2 * timeouts.finish_seconds),
           .recovery = fromSeconds(std::max(timeouts.rejoin_seconds, timeouts.lease_seconds))}};
}

}  // namespace dtf::workerd
