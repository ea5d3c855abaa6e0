#include "daemons/workerd/worker_client.h"

#include <utility>

#include "common/base/check.h"
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

class RemoteClient final : public WorkerClient {
 public:
  explicit RemoteClient(wire::RpcClientOptions options) : client_(std::move(options)) {}

  exchange::ExchangeClient& parameters() override { return client_; }
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
  wire::RpcExchangeClient client_;
};

}  // namespace

std::unique_ptr<WorkerClient> connectToPs(const cluster::TaskOptions& task,
                                          const net::Credentials& credentials,
                                          std::function<void(uint32_t)> on_replaced,
                                          OnWaiting on_waiting) {
  return std::make_unique<RemoteClient>(
      clientOptions(task, credentials, std::move(on_replaced), std::move(on_waiting)));
}

std::string whoWasToldToEnd(WorkerClient& client, const ShardHosts& hosts) {
  std::string names;
  const std::set<uint32_t> told = client.toldToEnd();
  for (const uint32_t shard : told) names += (names.empty() ? "" : ", ") + hosts.of(shard).name();
  return (names.empty() ? "a ps" : names) + (told.size() > 1 ? " were" : " was") + " told to end";
}

}  // namespace dtf::workerd
