#pragma once

// A client's connection to one task of its session.

#include <kj/async.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/base/step_trace.h"
#include "common/cluster/spec.h"
#include "common/engine/rendezvous.h"
#include "common/engine/task_part.h"
#include "common/engine/variable_store.h"
#include "common/graph/graph.h"
#include "common/net/loop.h"
#include "common/net/rpc_connection.h"
#include "common/wire/arena_codec.h"
#include "common/wire/parts.capnp.h"
#include "common/wire/session/part_codec.h"
#include "common/wire/session/session_token.h"

namespace dtf::wire {

// What a task answers to runPart().
struct PartResult {
  std::vector<Tensor> fetches;
  uint64_t kernels = 0;
  trace::TaskTrace trace{};  // where it was asked for
};

// Once it is lost it stays lost: a session is as good as all of its processes.
// Owns: the connection. Borrows: `loop`.
// Threads: loop-thread only; task(), incarnation(), devices() and peer() from any once it is open.
// Blocks: never.
// Errors: by promise, as dtf::Error inside: what the task answered, or kUnavailable that says that
// it is lost.
class TaskLink {
 public:
  // `wanted`: the task that must answer; none: whichever does. `chunk_bytes`: of a blob of a tensor
  // that is sent, see arena_codec.h.
  TaskLink(net::Loop& loop, cluster::Address address, std::optional<TaskId> wanted = {},
           uint64_t chunk_bytes = kChunkBytesMax);
  ~TaskLink() noexcept(false);
  TaskLink(const TaskLink&) = delete;
  TaskLink& operator=(const TaskLink&) = delete;

  kj::Promise<void> open(const SessionToken& token, Duration patience);

  TaskId task() const { return task_; }
  Incarnation incarnation() const { return incarnation_; }
  const std::vector<graph::DeviceName>& devices() const { return devices_; }
  const std::string& peer() const { return peer_; }  // "worker/1 (localhost:2223)"
  // Where the other tasks of its cluster are, as it says; empty: it doesn't.
  const std::map<TaskId, cluster::Address>& cluster() const { return cluster_; }

  kj::Promise<void> registerPart(uint64_t plan, std::shared_ptr<const engine::TaskPart> part,
                                 const Processes& processes, Duration deadline);
  void releasePart(uint64_t plan);  // nobody waits for it
  // The value must stay until the promise is resolved; then nothing refers to it.
  kj::Promise<void> setVariable(const engine::ResourceKey& key, const Tensor& value,
                                Duration deadline);
  // `feeds` likewise. Whoever asks ends the step by abort(); should he be gone, the task does so at
  // `deadline`.
  kj::Promise<PartResult> runPart(uint64_t plan, uint64_t step, Duration deadline,
                                  const std::vector<const Tensor*>& feeds,
                                  const std::vector<graph::TensorSpec>& fetches,
                                  bool is_traced = false);
  kj::Promise<void> reset(const std::string& container, Duration deadline);
  // Resolved when nothing of the step runs there, also because the task is lost: it is when it
  // doesn't answer in time.
  kj::Promise<void> abort(uint64_t step, const Error& cause, Duration patience);
  kj::Promise<engine::RendezvousLoad> load(Duration deadline);

  // Why it is lost; nullopt: it isn't.
  const std::optional<Error>& lost() const { return lost_; }

 private:
  kj::Promise<void> hello(net::RpcConnection& connection, const SessionToken& token);
  // Errors: kBadData for names that the task can't have.
  void checkDevices(capnp::List<capnp::Text>::Reader names);
  // Errors: kBadData for what is no address, or for too many.
  void takeCluster(capnp::List<schema::ClusterTask>::Reader tasks);
  schema::GraphSession::Client& session();
  // What a call fails with: the task's own word, or that it is lost, of which this is the first
  // sign.
  Error failure(const kj::Exception& exception);
  void lose(const std::string& reason);
  // A call: its errors as failure(), and never before the connection is gone, where it is lost.
  template <class T>
  kj::Promise<T> bridged(kj::Promise<T> answered);
  kj::Promise<void> whenGone();

  net::Loop& loop_;
  const cluster::Address address_;
  const std::optional<TaskId> wanted_;
  const uint64_t chunk_bytes_;
  std::string peer_;
  TaskId task_;
  Incarnation incarnation_;
  std::vector<graph::DeviceName> devices_;
  std::map<TaskId, cluster::Address> cluster_;
  uint64_t bytes_max_ = 0;  // that the task may hold
  std::shared_ptr<net::RpcConnection> connection_;
  kj::Maybe<schema::GraphSession::Client> session_;
  std::optional<Error> lost_;
  kj::Promise<void> watching_ = nullptr;
};

}  // namespace dtf::wire
