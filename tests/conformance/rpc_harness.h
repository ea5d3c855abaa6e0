#pragma once

// Real psd servers on real sockets, each in a thread of its own, and workers' clients of them.

#include <functional>
#include <future>
#include <iterator>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/base/json.h"
#include "common/base/mutex.h"
#include "common/net/connector.h"
#include "common/net/error_bridge.h"
#include "common/net/rpc_connection.h"
#include "common/wire/ps.capnp.h"
#include "common/wire/ps/replica_link.h"
#include "common/wire/ps/rpc_exchange_client.h"
#include "daemons/psd/ps_process.h"
#include "tests/conformance/exchange_client_suite.h"
#include "tests/support/loopback.h"
#include "tests/support/process.h"

namespace dtf::exchange {

inline cluster::Timeouts shortTimeouts() {
  cluster::Timeouts timeouts;
  timeouts.heartbeat_seconds = 0.1;
  timeouts.lease_seconds =
      3;  // loaded machines and ThreadSanitizer starve a thread for more than 1 s
  timeouts.start_seconds = 30;
  timeouts.rejoin_seconds = 0;  // no launcher restarts a lost worker
  return timeouts;
}

inline std::unique_ptr<net::RpcConnection> connectTo(net::Reactor& reactor,
                                                     const cluster::Address& address) {
  net::Transport socket =
      net::connectToPeer(reactor.port, address.host, address.port, {}).wait(reactor.wait_scope);
  return std::make_unique<net::RpcConnection>(
      kj::heap<net::AsioMessageStream>(reactor.port, std::move(socket), net::Limits{},
                                       net::BufferPool::create(0)),
      net::RpcOptions{.peer = "ps"});
}

// The status that the ps at `address` returns.
inline Json statusOf(const cluster::Address& address) {
  net::Reactor reactor;
  const auto connection = connectTo(reactor, address);
  auto gate = connection->bootstrap().castAs<schema::PsGate>();
  const auto response = gate.statusRequest().send().wait(reactor.wait_scope);
  return Json::parse(response.getJson().cStr());
}

class RpcHarness final : public ClusterHarness {
 public:
  // Changes the addresses at which ps `ps_task` reaches the others.
  using PsVia = std::function<void(uint32_t ps_task, std::vector<cluster::TaskSpec>& ps)>;

  RpcHarness(uint32_t ps_tasks, uint32_t workers,
             const cluster::Timeouts& timeouts = shortTimeouts(),
             cluster::Durability durability = cluster::Durability::kCheckpoint,
             const PsVia& ps_via = {}, uint64_t chunk_bytes = wire::kChunkBytesMax,
             cluster::Transport transport = cluster::Transport::kTcp)
      : chunk_bytes_(chunk_bytes) {
    job_.job = "conformance";
    job_.cluster.transport = transport;
    job_.run_dir = run_dir_.path();
    job_.durability.kind = durability;
    if (durability == cluster::Durability::kSnapshot) job_.durability.snapshot_every_steps = 1;
    job_.timeouts = timeouts;
    std::vector<Fd> listening;
    for (uint32_t i = 0; i < ps_tasks; ++i) {
      listening.push_back(testing::listenOnLoopback());
      cluster::TaskSpec task;
      task.address = {"127.0.0.1", testing::portOf(listening.back())};
      job_.cluster.ps.push_back(task);
    }
    job_.cluster.worker.resize(workers);
    for (uint32_t i = 0; i < ps_tasks; ++i) startServer(i, std::move(listening[i]), ps_via);
  }

  ~RpcHarness() override {
    for (auto& server : servers_) server.stop();
    for (auto& server : servers_) server.thread.join();
  }

  std::unique_ptr<ExchangeClient> connect(uint32_t rank) override { return connectRpc(rank); }

  std::unique_ptr<wire::RpcExchangeClient> connectRpc(uint32_t rank) {
    wire::RpcClientOptions options;
    options.link = wire::linkOptions(job_, {JobKind::kWorker, rank}, Incarnation::ofNow());
    options.ps = wire::addressesOf(job_.cluster.ps);
    options.link.share_from_bytes = share_from_bytes;
    options.link.exchanges_in_memory = exchanges_in_memory;
    options.link.stream_from_bytes = stream_from_bytes;
    options.link.chunk_bytes = chunk_bytes_;
    if (via) via(rank, options.ps);
    auto client = std::make_unique<wire::RpcExchangeClient>(std::move(options));
    MutexLock lock(mu_);
    clients_[rank] = client.get();
    return client;
  }

  arena::ModelDeclaration declared(arena::ModelDeclaration model) const override {
    model.replication.transfer_dtype = transfer_dtype;
    if (transfer_dtype == cluster::ReplicationSpec::TransferDtype::kTopK)
      model.replication.transfer_top_k = 0.5;
    return model;
  }
  double relativeError() const override {
    return transfer_dtype == cluster::ReplicationSpec::TransferDtype::kFloat32 ? 0 : 0x1p-8;
  }
  cluster::ReplicationSpec::TransferDtype transfer_dtype =
      cluster::ReplicationSpec::TransferDtype::kFloat32;

  // See wire::LinkOptions; by default all arenas travel.
  std::optional<uint64_t> share_from_bytes{};
  bool exchanges_in_memory = true;  // likewise; where arenas are shared

  // See wire::LinkOptions.
  std::optional<uint64_t> stream_from_bytes = uint64_t{1} << 20;

  // Changes the addresses at which a worker reaches the ps; null: their own.
  std::function<void(uint32_t rank, std::vector<cluster::Address>& ps)> via;

  replication::StalenessHistogram staleness() override {
    const Json status = statusOf(psAddress(0));
    replication::StalenessHistogram histogram;
    const Json& counts = status.at("staleness_histogram");
    DTF_CHECK(counts.size() == histogram.counts.size());
    for (size_t i = 0; i < counts.size(); ++i) histogram.counts[i] = counts[i].asUint64();
    histogram.sum = status.uint64At("staleness_sum");
    histogram.max = status.uint64At("staleness_max");
    return histogram;
  }

  // Ends that ps, as a signal to its process does.
  void stop(uint32_t ps_task) { std::next(servers_.begin(), ps_task)->server.get()->stop(); }

  const cluster::Address& psAddress(uint32_t ps_task) const {
    return job_.cluster.ps[ps_task].address;
  }

  // Returns the parameters that the keeper of that ps's replica gives back to its successor. The
  // caller stands in for the successor, so the ps is fenced from then on. For a model of one arena
  // of `elements`.
  std::vector<float> replicaOf(uint32_t ps_task, uint64_t elements) {
    const auto count = static_cast<uint32_t>(job_.cluster.ps.size());
    const uint32_t keeper = replication::backupOf(ps_task, count);
    net::Reactor reactor;
    net::ReactorLoop loop(reactor);
    auto done = kj::newPromiseAndFulfiller<std::vector<float>>();
    const auto fail = [&](const Error& error) { done.fulfiller->reject(net::toKj(error)); };
    wire::PsReplicaLink link(loop,
                             wire::linkOptions(job_, {JobKind::kPs, ps_task}, Incarnation::ofNow()),
                             keeper, psAddress(keeper), {[] {}, [](uint64_t) {}, fail});
    link.open(elements);
    link.fetch([&](const std::variant<replication::ReplicaSeed, Error>& fetched) {
      if (const auto* error = std::get_if<Error>(&fetched)) return fail(*error);
      const std::span<const float> values =
          std::get<replication::ReplicaSeed>(fetched).arenas.at(0);
      done.fulfiller->fulfill(std::vector<float>(values.begin(), values.end()));
    });
    return done.promise.wait(reactor.wait_scope);
  }

  // Freezes the worker's control thread until its lease has run out on every ps.
  void loseWorker(uint32_t rank) override {
    std::promise<void> release;
    wire::RpcExchangeClient* client;
    {
      MutexLock lock(mu_);
      client = clients_[rank];
    }
    client->TEST_control().post([until = release.get_future().share()] { until.wait(); });
    for (const cluster::TaskSpec& ps : job_.cluster.ps) awaitLost(ps.address, rank);
    release.set_value();
  }

 private:
  struct Server {
    std::promise<psd::PsProcess*> made;
    std::shared_future<psd::PsProcess*> server;
    std::promise<void> stopped;
    Thread thread;
    // A server of a finished job has returned from run() by itself, and waits for this.
    void stop() {
      server.get()->stop();
      stopped.set_value();
    }
  };

  void startServer(uint32_t index, Fd listening, const PsVia& via_of_ps) {
    cluster::TaskOptions options;
    options.task = {JobKind::kPs, index};
    options.job = job_;
    if (via_of_ps) via_of_ps(index, options.job.cluster.ps);
    Server& server = servers_.emplace_back();
    server.server = server.made.get_future().share();
    auto fd = std::make_shared<Fd>(std::move(listening));
    server.thread =
        Thread("ps" + std::to_string(index), [&server, options, fd, chunk_bytes = chunk_bytes_] {
          psd::PsProcess ps(options, net::Credentials(), std::move(*fd), chunk_bytes);
          server.made.set_value(&ps);
          ps.run();
          server.stopped.get_future().wait();
        });
    server.server.wait();
  }

  static void awaitLost(const cluster::Address& address, uint32_t rank) {
    net::Reactor reactor;
    const auto connection = connectTo(reactor, address);
    auto gate = connection->bootstrap().castAs<schema::PsGate>();
    const std::string name = TaskId{JobKind::kWorker, rank}.name();
    for (;;) {
      const auto response = gate.statusRequest().send().wait(reactor.wait_scope);
      if (Json::parse(response.getJson().cStr())["workers"][name] == "lost") return;
      reactor.timer.afterDelay(20 * kj::MILLISECONDS).wait(reactor.wait_scope);
    }
  }

  const uint64_t chunk_bytes_;              // of the workers and of the ps, see wire::LinkOptions
  const testing::TemporaryFolder run_dir_;  // its name also separates this job's snapshots from
                                            // other jobs'
  cluster::JobSpec job_;
  std::list<Server> servers_;
  Mutex mu_;
  std::map<uint32_t, wire::RpcExchangeClient*> clients_ DTF_GUARDED_BY(mu_);
};

}  // namespace dtf::exchange
