#include "daemons/workerd/worker_client.h"

#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/checkpoint/snapshot_folder.h"
#include "common/exchange/host_sum_client.h"
#include "common/replication/replication_rules.h"
#include "common/wire/checkpoint/rpc_checkpoint_client.h"
#include "common/wire/ps/rpc_exchange_client.h"

namespace dtf::workerd {

namespace {

wire::RpcClientOptions clientOptions(const cluster::TaskOptions& task,
                                     const net::Credentials& credentials,
                                     std::function<void(uint32_t)> on_replaced,
                                     OnWaiting on_waiting) {
  DTF_CHECK(!task.job.cluster.isOneProcess());
  wire::RpcClientOptions options;
  options.on_replaced = std::move(on_replaced);
  options.link = wire::linkOptions(task.job, task.task, Incarnation::ofNow(task.attempt));
  options.ps = wire::addressesOf(task.job.cluster.hosts());
  options.credentials = credentials;
  options.on_waiting = std::move(on_waiting);
  return options;
}

// Returns a digest of the addresses of a job's workers: two jobs of one name and run_dir have
// others.
uint64_t jobIdentity(const cluster::JobSpec& job) {
  return wire::fingerprintOf(wire::addressesOf(job.cluster.worker));
}

// Returns the place of this worker in the sum of its host; nullopt: it exchanges its own gradient.
std::optional<exchange::HostSumOptions> hostSumOf(const cluster::TaskOptions& task,
                                                  OnWaiting on_waiting) {
  const cluster::JobSpec& job = task.job;
  const cluster::ReplicationSpec& replication = job.train->replication;
  const uint32_t leader = replication::pusherOf(replication, task.task.index);
  std::vector<uint32_t> ranks = replication::pushedBy(replication, leader);
  if (ranks.size() < 2) return std::nullopt;
  const checkpoint::SnapshotPlace place = checkpoint::sharedMemoryPlace(job.job, job.run_dir);
  return exchange::HostSumOptions{.file = checkpoint::hostSumFile(place, leader),
                                  .ranks = std::move(ranks),
                                  .rank = task.task.index,
                                  .identity = jobIdentity(job),
                                  .start_timeout = fromSeconds(job.timeouts.start_seconds),
                                  .step_timeout = fromSeconds(job.timeouts.step_seconds),
                                  .rejoin_timeout = fromSeconds(job.timeouts.rejoin_seconds),
                                  .on_waiting = std::move(on_waiting)};
}

class RemoteClient final : public WorkerClient {
 public:
  RemoteClient(wire::RpcClientOptions options, std::optional<exchange::HostSumOptions> host_sum)
      : client_(endingToo(std::move(options), host_sum)) {
    if (host_sum) sum_.emplace(client_, *std::move(host_sum));
  }

  exchange::ExchangeClient& parameters() override {
    if (sum_) return *sum_;
    return client_;
  }
  std::unique_ptr<checkpoint::CheckpointClient> checkpoints(double disk_seconds) override {
    return std::make_unique<wire::RpcCheckpointClient>(client_, disk_seconds);
  }
  void requestStop(WorkerStatus::Refused refused) override {
    client_.requestStop(std::move(refused));
  }
  void pause() override { client_.pause(); }
  std::set<uint32_t> toldToEnd() override { return client_.toldToEnd(); }
  void fail(const Error& error, wire::FailureOf failure_of, Duration patience) override {
    client_.fail(error, failure_of, patience);
  }
  void endWith(const Error& error) override { client_.endWith(error); }
  void askHeartbeats(std::function<void()> answer) override {
    client_.controlThread().post(std::move(answer));
  }

 private:
  // The loss of a ps ends the waits for workers of the host, too.
  static wire::RpcClientOptions endingToo(wire::RpcClientOptions options,
                                          const std::optional<exchange::HostSumOptions>& host_sum) {
    if (host_sum)
      options.on_lost = [ended = host_sum->ended](const Error& error) { ended->end(error); };
    return options;
  }

  wire::RpcExchangeClient client_;
  std::optional<exchange::HostSumClient> sum_;  // with replication.topology
};

}  // namespace

std::unique_ptr<WorkerClient> connectToPs(const cluster::TaskOptions& task,
                                          const net::Credentials& credentials,
                                          std::function<void(uint32_t)> on_replaced,
                                          OnWaiting on_waiting) {
  std::optional<exchange::HostSumOptions> host_sum = hostSumOf(task, on_waiting);
  return std::make_unique<RemoteClient>(
      clientOptions(task, credentials, std::move(on_replaced), std::move(on_waiting)),
      std::move(host_sum));
}

std::string whoWasToldToEnd(WorkerClient& client, const ShardHosts& hosts) {
  std::string names;
  const std::set<uint32_t> told = client.toldToEnd();
  for (const uint32_t shard : told) names += (names.empty() ? "" : ", ") + hosts.of(shard).name();
  return (names.empty() ? "a ps" : names) + (told.size() > 1 ? " were" : " was") + " told to end";
}

}  // namespace dtf::workerd
