#pragma once

// A fake ps behind a real socket, on a thread of its own, for the blocking clients.

#include <algorithm>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "common/net/listener.h"
#include "common/net/reactor.h"
#include "common/net/socket_options.h"
#include "common/wire/ps/rpc_exchange_client.h"
#include "tests/unit/wire/fake_ps.h"

namespace dtf::wire::fake {

inline constexpr uint64_t kElements = 16;

// Owns: the thread, the listening socket, the connections.
class FakePsHost {
 public:
  FakePsHost() {
    ps_.parameters.resize(kElements);
    port_ = io_.call([this] {
      listener_ = std::make_unique<net::Listener>(
          io_.port(), "127.0.0.1", uint16_t{0},
          [this](net::AcceptedSocket socket, net::ConnectionKind kind, const std::string&) {
            net::AsioEventPort::Io io(io_.port());
            auto stream = kj::heap<net::AsioMessageStream>(
                io_.port(), net::adoptTransport(io_.reactor().ioc, std::move(socket)),
                net::Limits{}, net::BufferPool::create(0));
            connections_.push_back(serveFakePs(ps_, kj::mv(stream), kind));
          });
      return listener_->port();
    });
    io_.onStop([this] {
      connections_.clear();
      listener_ = nullptr;
    });
  }

  // Runs `fn(ps)` on the ps's thread.
  template <class Fn>
  auto with(Fn fn) {
    return io_.call([this, &fn] { return fn(ps_); });
  }
  // Returns a future that is ready at the next call of `name`.
  std::future<void> asked(const std::string& name) {
    auto asked = std::make_shared<std::promise<void>>();
    std::future<void> future = asked->get_future();
    with([&](FakePs& ps) {
      ps.on_call = [asked, name, told = false](const std::string& call) mutable {
        if (call == name && !std::exchange(told, true)) asked->set_value();
      };
    });
    return future;
  }
  // Ends the connections, as the end of the process does.
  void kill() {
    io_.call([this] {
      listener_->close();
      connections_.clear();
    });
  }

  uint16_t port() const { return port_; }
  RpcClientOptions clientOptions() const {
    cluster::JobSpec job;
    job.cluster.worker.resize(1);
    job.cluster.ps.resize(2);
    RpcClientOptions options;
    options.link = linkOptions(job, {JobKind::kWorker, 0}, Incarnation{1});
    options.link.share_from_bytes = std::nullopt;
    options.ps = {{"127.0.0.1", port_}};
    return options;
  }
  static arena::ModelDeclaration model() {
    arena::ModelDeclaration model;
    model.layout = arena::makeLayout({{"v", Shape{kElements}, {{0, 0, kElements}}}}, 1);
    model.steps = 10;
    return model;
  }

 private:
  FakePs ps_;
  std::unique_ptr<net::Listener> listener_;
  std::vector<kj::Own<net::RpcConnection>> connections_;
  uint16_t port_ = 0;
  net::IoThread io_{"fake-ps"};  // its thread uses the members above
};

}  // namespace dtf::wire::fake
