#pragma once

// Real PsServers on loops with a simulated clock, and clients on pipes.

#include <gtest/gtest.h>
#include <kj/async-io.h>

#include <memory>
#include <vector>

#include "common/base/file_system.h"
#include "common/host/ps_server.h"
#include "common/net/rpc_connection.h"
#include "common/wire/model_codec.h"
#include "common/wire/ps/ps_link.h"
#include "tests/support/still_loop.h"

namespace dtf::host {

inline constexpr Incarnation kOne{1};

// A client's end of a connection. `cut()`: both directions break, as when a proxy in between dies.
struct PipeEnd {
  kj::Own<net::RpcConnection> connection;
  kj::AsyncIoStream* server_end = nullptr;
};

// Owns: servers, loop.
class PsWorld {
 public:
  static cluster::JobSpec job(uint32_t ps_tasks, uint32_t workers) {
    cluster::JobSpec job;
    job.job = "still";
    job.run_dir = "/nowhere";
    for (uint32_t i = 0; i < ps_tasks; ++i)
      job.cluster.ps.emplace_back().address = {"still-ps", static_cast<uint16_t>(i + 1)};
    job.cluster.worker.resize(workers);
    return job;
  }

  PsWorld(uint32_t ps_tasks, uint32_t workers) : job_(job(ps_tasks, workers)) {
    for (uint32_t i = 0; i < ps_tasks; ++i) addServer(i, loop);
  }
  ~PsWorld() {
    for (auto& server : servers_) server->stopData();
  }

  PsServer& server(uint32_t index = 0) { return *servers_[index]; }
  shard::Shard& shard(uint32_t index = 0) { return server(index).host().shard(); }
  bool ended(uint32_t index = 0) const { return ended_[index]; }
  const cluster::JobSpec& jobSpec() const { return job_; }

  // Returns a stream to ps `index`; the ps serves the other end.
  kj::Own<kj::AsyncIoStream> serve(uint32_t index, kj::AsyncIoStream** server_end = nullptr) {
    auto pipe = kj::newTwoWayPipe();
    if (server_end != nullptr) *server_end = pipe.ends[0].get();
    server(index).serveControl(net::wrapStream(kj::mv(pipe.ends[0])), "pipe");
    return kj::mv(pipe.ends[1]);
  }
  kj::Own<net::RpcConnection> client(uint32_t index = 0) {
    return kj::heap<net::RpcConnection>(net::wrapStream(serve(index)), net::RpcOptions{});
  }

  // Opens a worker's control session over `connection`.
  schema::PsControl::Client hello(net::RpcConnection& connection, uint32_t rank,
                                  Incarnation incarnation, uint32_t ps = 0) {
    auto request = connection.bootstrap().castAs<schema::PsGate>().helloRequest();
    wire::encodeHello(wire::linkOptions(job_, {JobKind::kWorker, rank}, incarnation),
                      {JobKind::kPs, ps}, request.initHello());
    auto promise = request.send();
    schema::PsControl::Client control = promise.getControl();
    auto done = promise.ignoreResult().eagerlyEvaluate(nullptr);
    loop.settle();
    done.wait(loop.waitScope());
    return control;
  }

  // Returns a bulk connection to ps `index`.
  kj::Own<net::RpcConnection> bulkClient(uint32_t index = 0) {
    auto pipe = kj::newTwoWayPipe();
    server(index).serveBulk(net::wrapStream(kj::mv(pipe.ends[0])), "bulk pipe");
    return kj::heap<net::RpcConnection>(net::wrapStream(kj::mv(pipe.ends[1])), net::RpcOptions{});
  }

  // Returns the error of a call; "" if it succeeds, "waits" while it has no reply.
  std::string refusal(kj::Promise<void> call) {
    std::string text = "waits";
    auto done = call.then([&text] { text = ""; },
                          [&text](kj::Exception&& e) { text = net::toError(e).message(); })
                    .eagerlyEvaluate(nullptr);
    loop.settle();
    return text;
  }

  testing::StillLoop loop;

 private:
  void addServer(uint32_t index, net::Loop& data) {
    cluster::TaskOptions task;
    task.task = {JobKind::kPs, index};
    task.job = job_;
    ended_.push_back(false);
    servers_.push_back(std::make_unique<PsServer>(task, loop, data, loop, realFileSystem()));
    servers_.back()->startData(std::make_unique<optimizer::InlineUpdateRunner>());
    servers_.back()->start([] {}, [this, index] { ended_[index] = true; });
  }

  const cluster::JobSpec job_;
  std::vector<bool> ended_;
  std::vector<std::unique_ptr<PsServer>> servers_;
};

}  // namespace dtf::host
