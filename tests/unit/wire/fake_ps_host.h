#pragma once

// A fake ps behind a real socket, on a thread of its own: what the blocking clients meet.

#include <algorithm>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "common/net/listener.h"
#include "common/net/reactor.h"
#include "common/net/socket_options.h"
#include "common/wire/rpc_parameter_client.h"
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
  // Ready when the ps is next asked for `name`.
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
  // Its connections end, as when its process does.
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
    RpcClientOptions options;
    options.link = linkOptions(job, {JobKind::kWorker, 0}, Incarnation{1});
    options.ps = {{"127.0.0.1", port_}};
    return options;
  }
  static ps::ModelDeclaration model() {
    ps::ModelDeclaration model;
    model.layout = ps::makeLayout({{"v", Shape{kElements}, {{0, 0, kElements}}}}, 1);
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
