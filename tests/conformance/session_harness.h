#pragma once

// Tasks for sessions under test: devices of this process, or task servers on real sockets, each in
// a thread of its own. Both have the same devices, and a test can make their kernels act.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <future>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/base/json.h"
#include "common/engine/local_tasks.h"
#include "common/net/connector.h"
#include "common/net/listener.h"
#include "common/net/message_stream.h"
#include "common/net/rpc_connection.h"
#include "common/net/socket_options.h"
#include "common/serving/part_server.h"
#include "common/wire/session/remote_tasks.h"
#include "tests/support/loopback.h"
#include "tests/unit/engine/devices.h"

namespace dtf::engine::testing {

inline constexpr TaskId kWorker0{JobKind::kWorker, 0}, kWorker1{JobKind::kWorker, 1};
inline constexpr TaskId kPs0{JobKind::kPs, 0};

inline Tensor floats(Shape shape, const std::vector<float>& values) {
  Tensor tensor(DType::kFloat32, std::move(shape));
  std::copy(values.begin(), values.end(), tensor.as<float>().begin());
  return tensor;
}

inline Tensor filled(Shape shape, float value) {
  Tensor tensor(DType::kFloat32, std::move(shape));
  std::fill(tensor.as<float>().begin(), tensor.as<float>().end(), value);
  return tensor;
}

// Name of the suites' parameter: true is over sockets.
inline std::string nameOf(const ::testing::TestParamInfo<bool>& remote) {
  return remote.param ? "Sockets" : "InProcess";
}

// A task that serves, in a thread of its own. The destructor stops and joins it.
class ServingThread {
 public:
  ServingThread(serving::PartServerOptions options, Fd listening,
                const std::vector<SessionDevice>& devices)
      : port_(dtf::testing::portOf(listening)) {
    std::promise<void> ready;
    auto fd = std::make_shared<Fd>(std::move(listening));
    thread_ = Thread("serve", [this, &ready, options = std::move(options), fd, &devices] {
      net::Reactor reactor;
      net::ReactorLoop loop(reactor);
      serving::PartServer server(options, loop, devices);
      net::Listener listener(
          reactor.port, std::move(*fd),
          [&](net::AcceptedSocket socket, net::ConnectionKind, std::string peer) {
            net::AsioEventPort::Io io(reactor.port);
            server.serve(kj::heap<net::AsioMessageStream>(
                             reactor.port, net::adoptTransport(reactor.ioc, std::move(socket)),
                             net::kLimitsBeforeHello, server.pool()),
                         std::move(peer));
          });
      reactor_ = &reactor;
      ready.set_value();
      reactor.run();
    });
    ready.get_future().wait();
  }
  ~ServingThread() {
    net::asio::post(reactor_->ioc, [this] { reactor_->stop(); });
    thread_.join();
  }
  uint16_t port() const { return port_; }
  std::string target() const { return "dtf://127.0.0.1:" + std::to_string(port_); }

 private:
  const uint16_t port_;
  net::Reactor* reactor_ = nullptr;
  Thread thread_;
};

// A client's end of a connection, for messages that dtf's own clients never send. Borrows the loop.
struct RawClient {
  RawClient(net::Reactor& on, uint16_t port)
      : reactor(on),
        connection(kj::heap<net::AsioMessageStream>(
                       reactor.port,
                       net::connectToPeer(reactor.port, "127.0.0.1", port,
                                          {.kind = net::ConnectionKind::kBulk})
                           .wait(reactor.wait_scope),
                       net::Limits{}, net::BufferPool::create(0)),
                   net::RpcOptions{.peer = "task"}) {}
  schema::TaskGate::Client gate() { return connection.bootstrap().castAs<schema::TaskGate>(); }
  template <class Request>
  auto ask(Request&& request) {
    return request.send().wait(reactor.wait_scope);
  }
  Json status() {
    const auto answer = ask(gate().statusRequest());
    return Json::parse(answer.getJson().cStr());
  }

  net::Reactor& reactor;
  net::RpcConnection connection;
};

// `device_names` of any tasks; `act` as in Devices.
class SessionHarness {
 public:
  SessionHarness(bool remote, const std::vector<graph::DeviceName>& device_names,
                 const serving::ServeLimits& limits = {.sessions = 4})
      : remote_(remote), devices_(device_names), chunk_bytes_(limits.chunk_bytes) {
    if (!remote) {
      process_ = std::make_shared<LocalProcess>(devices_.all());
      return;
    }
    std::map<TaskId, std::vector<SessionDevice>> of;
    for (const SessionDevice& device : devices_.all()) of[*device.name.taskId()].push_back(device);
    std::map<TaskId, Fd> listening;
    serving::PartServerOptions options;
    options.limits = limits;
    for (const auto& [task, own] : of) {
      Fd fd = dtf::testing::listenOnLoopback();
      auto& addresses = task.job == JobKind::kPs ? options.ps : options.workers;
      if (addresses.size() <= task.index) addresses.resize(task.index + 1);
      addresses[task.index] = {"127.0.0.1", dtf::testing::portOf(fd)};
      listening.emplace(task, std::move(fd));
    }
    by_task_ = of;
    for (auto& [task, fd] : listening) {
      options.self = task;
      options.incarnation = Incarnation::ofNow();
      incarnations_[task] = options.incarnation;
      servers_.emplace(task,
                       std::make_unique<ServingThread>(options, std::move(fd), by_task_.at(task)));
    }
  }

  void act(const std::string& node, std::function<void()> what) {
    devices_.act(node, std::move(what));
  }

  std::unique_ptr<Tasks> connect(Duration step_max = std::chrono::seconds(600)) {
    if (!remote_) return std::make_unique<LocalTasks>(process_, step_max);
    wire::RemoteTasksOptions limited = options();
    limited.limits.step_max = step_max;
    return std::make_unique<wire::RemoteTasks>(std::move(limited));
  }
  // In the order of the devices, so that both kinds prefer the same one.
  wire::RemoteTasksOptions options() const {
    wire::RemoteTasksOptions options;
    options.limits.chunk_bytes = chunk_bytes_;
    std::set<TaskId> added;
    for (const SessionDevice& device : devices_.all()) {
      const TaskId task = *device.name.taskId();
      if (added.insert(task).second) options.targets.push_back(servers_.at(task)->target());
    }
    return options;
  }

  bool isRemote() const { return remote_; }
  ServingThread& server(TaskId task) { return *servers_.at(task); }
  Incarnation incarnation(TaskId task) const { return incarnations_.at(task); }
  // Stops the task as the end of its process does: its sockets are closed.
  void stop(TaskId task) { servers_.erase(task); }

 private:
  const bool remote_;
  Devices devices_;
  const uint64_t chunk_bytes_;             // of the client and of the tasks
  std::shared_ptr<LocalProcess> process_;  // not remote
  std::map<TaskId, std::vector<SessionDevice>> by_task_;
  std::map<TaskId, Incarnation> incarnations_;
  std::map<TaskId, std::unique_ptr<ServingThread>> servers_;
};

}  // namespace dtf::engine::testing
