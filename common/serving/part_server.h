#pragma once

// A task that serves sessions: it runs other programs' graphs on its devices. The protocol is in
// common/wire/parts.capnp; the process around it in serve_process.h.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/metrics.h"
#include "common/engine/local_tasks.h"
#include "common/net/buffer_pool.h"
#include "common/net/loop.h"
#include "common/serving/counted_device.h"
#include "common/serving/served_session.h"
#include "common/wire/connection_set.h"
#include "common/wire/session/session_token.h"

namespace dtf::serving {

struct PartServerOptions {
  TaskId self;
  Incarnation incarnation;
  std::vector<cluster::Address> ps, workers;  // addresses of the cluster's tasks
  ServeLimits limits{};
  engine::MakeDeviceQueue make_queue = engine::makeDeviceThread;
};

// Owns: sessions, variables, queues, a thread for each device, one that compiles, one that copies
// values, connections.
// Borrows: the loop; devices and their kernels. These must also outlive the loop's pending work
// when this is destroyed, because that may hold compiled programs.
// Threads: made, used and destroyed on the loop.
// Blocks: the destructor, until running computations have ended.
class PartServer {
 public:
  PartServer(PartServerOptions options, net::Loop& loop,
             const std::vector<engine::SessionDevice>& devices);
  ~PartServer() noexcept(false);
  PartServer(const PartServer&) = delete;
  PartServer& operator=(const PartServer&) = delete;

  void serve(kj::Own<net::MessageStream> stream, std::string peer);

  // The pool for bytes that connections receive.
  const std::shared_ptr<net::BufferPool>& pool() const { return pool_; }
  size_t sessions() const { return sessions_.size(); }
  std::vector<Metric> metrics() const;
  // Adds the task's HTTP address to its status.
  void tellsMetricsAt(std::string address) { metrics_address_ = std::move(address); }

  // For the RPC services. Errors: as in the schema.
  ServedSession& open(const wire::SessionToken& token, const wire::ConnectionRef& client);
  ServedSession* find(uint64_t session);  // null: there is none, or it has ended
  const ServedTask& task() const { return task_; }
  std::string statusJson() const;

 private:
  using CountedDevices = std::vector<std::unique_ptr<CountedDevice>>;
  static std::shared_ptr<const CountedDevices> count(
      const std::vector<engine::SessionDevice>& devices, const std::shared_ptr<ByteBudget>& budget);

  void onClosed(const void* key);
  void eraseIfOver(uint64_t session);

  const PartServerOptions options_;
  const std::shared_ptr<PartServer*> self_;  // null once this is gone: posted handlers check it
  const std::shared_ptr<ByteBudget> budget_;
  const std::shared_ptr<net::BufferPool> pool_;
  const std::shared_ptr<const CountedDevices> memory_;
  engine::VariableStore variables_;
  engine::QueueStore queues_;
  std::unique_ptr<engine::DeviceThreads> devices_;
  std::unique_ptr<engine::DeviceQueue> registrar_, copier_;
  ServedTask task_;
  std::map<uint64_t, std::unique_ptr<ServedSession>> sessions_;
  net::LogLimiter<1> limiter_;
  std::string metrics_address_;  // empty: no HTTP server
  std::unique_ptr<wire::ConnectionSet> connections_;
};

}  // namespace dtf::serving
