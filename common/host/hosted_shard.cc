#include "common/host/hosted_shard.h"

#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/host/compute_runner.h"
#include "common/net/socket_options.h"

namespace dtf::host {

namespace {

checkpoint::SnapshotPlace placeOf(const cluster::JobSpec& job) {
  if (job.durability.kind != cluster::Durability::kSnapshot) return {};
  return checkpoint::sharedMemoryPlace(job.job, job.run_dir);
}

// Returns the options with the task's name in hellos: a host is the ps of its shard, see
// wire::LinkOptions.
cluster::TaskOptions asHost(cluster::TaskOptions task) {
  const std::optional<uint32_t> shard = task.job.cluster.shardHosts().shardOf(task.task);
  DTF_CHECK_MSG(shard.has_value(), task.task.name());
  task.task = {JobKind::kPs, *shard};
  return task;
}

bool isPs(const cluster::TaskOptions& task) {
  return task.task.job == JobKind::kPs;
}

}  // namespace

HostedShard::HostedShard(const cluster::TaskOptions& task, net::Reactor& reactor,
                         net::Loop& control, const net::Credentials& credentials,
                         uint64_t chunk_bytes)
    : reactor_(reactor),
      disk_(isPs(task) ? "psd-disk" : "shard-disk"),
      data_(isPs(task) ? "psd-data" : "shard-data", net::kDataBusyPoll, credentials) {
  server_ = std::make_unique<PsServer>(asHost(task), control, data_, disk_, realFileSystem(),
                                       placeOf(task.job), chunk_bytes);
  data_.call([this] { server_->startData(std::make_unique<ComputeRunner>(data_)); });
  data_.onStop([this] { server_->stopData(); });
}

HostedShard::~HostedShard() noexcept(false) = default;

void HostedShard::serve(net::AcceptedSocket socket, net::ConnectionKind kind, std::string peer,
                        const PsServer::Extend& extend) {
  if (kind == net::ConnectionKind::kBulk) {
    auto accepted = std::make_shared<net::AcceptedSocket>(std::move(socket));
    data_.post([this, accepted, peer = std::move(peer)] {
      server_->serveBulk(
          kj::heap<net::AsioMessageStream>(
              data_.port(), net::adoptTransport(data_.reactor().ioc, std::move(*accepted)),
              net::kLimitsBeforeHello, server_->bulkPool()),
          peer);
    });
    return;
  }
  net::AsioEventPort::Io io(reactor_.port);
  server_->serveControl(kj::heap<net::AsioMessageStream>(
                            reactor_.port, net::adoptTransport(reactor_.ioc, std::move(socket)),
                            net::kLimitsBeforeHello, nullptr),
                        std::move(peer), extend);
}

int HostedShard::result() {
  const int code = server_->result();
  // After another end the job may restore from its snapshots.
  if (server_->endedWell()) forgetSnapshots(server_->options().checkpoint);
  return code;
}

}  // namespace dtf::host
