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

// The result of runPart().
struct PartResult {
  std::vector<Tensor> fetches;
  uint64_t kernels = 0;
  trace::TaskTrace trace{};  // of a traced step
};

// A client's link to one task. A lost link stays lost, since a session needs all of its processes.
// Owns: the connection.
// Borrows: `loop` (must outlive this).
// Threads: loop-thread only; task(), incarnation(), devices() and peer() from any thread once it is
// open.
// Blocks: never.
// Errors: by promise, with a dtf::Error inside: the error of the task, or kUnavailable when it is
// lost.
class TaskLink {
 public:
  // `wanted`: the task that must answer; nullopt: any. `chunk_bytes`: the size of a tensor's blobs,
  // see arena_codec.h.
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
  // Returns the addresses of the other tasks in its cluster; empty if the task has reported none.
  const std::map<TaskId, cluster::Address>& cluster() const { return cluster_; }
  // Likewise those of "host:auto", which nobody can reach by them.
  const std::map<TaskId, cluster::Address>& automatic() const { return automatic_; }

  kj::Promise<void> registerPart(uint64_t plan, std::shared_ptr<const engine::TaskPart> part,
                                 const Processes& processes, Duration deadline);
  void releasePart(uint64_t plan);  // doesn't wait for the reply
  // Borrows `value` until the promise is resolved.
  kj::Promise<void> setVariable(const engine::ResourceKey& key, const Tensor& value,
                                Duration deadline);
  // Borrows `feeds` likewise. The caller ends the step by abort(); if the caller is gone, the task
  // ends it at `deadline`.
  kj::Promise<PartResult> runPart(uint64_t plan, uint64_t step, Duration deadline,
                                  const std::vector<const Tensor*>& feeds,
                                  const std::vector<graph::TensorSpec>& fetches,
                                  bool is_traced = false);
  kj::Promise<void> reset(const std::string& container, Duration deadline);
  // Resolves when the step has ended on the task, or the task is lost. A task that doesn't reply
  // within `patience` is lost.
  kj::Promise<void> abort(uint64_t step, const Error& cause, Duration patience);
  kj::Promise<engine::RendezvousLoad> load(Duration deadline);

  // Returns the reason of the loss; nullopt: the link is not lost.
  const std::optional<Error>& lost() const { return lost_; }

 private:
  kj::Promise<void> hello(net::RpcConnection& connection, const SessionToken& token);
  // Errors: kBadData for names that the task can't have.
  void checkDevices(capnp::List<capnp::Text>::Reader names);
  // Errors: kBadData for an invalid address, or for too many.
  void takeCluster(capnp::List<schema::ClusterTask>::Reader tasks);
  schema::GraphSession::Client& session();
  // Returns the error of a failed call: the task's own, or the loss of the task, which this call
  // may be the first to notice.
  Error failure(const kj::Exception& exception);
  void lose(const std::string& reason);
  // Converts the errors of a call with failure(). After a loss it rejects only when the connection
  // is destroyed, and refers to no memory of the caller.
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
  std::map<TaskId, cluster::Address> cluster_, automatic_;
  uint64_t bytes_max_ = 0;  // the limit of the task's memory
  std::shared_ptr<net::RpcConnection> connection_;
  kj::Maybe<schema::GraphSession::Client> session_;
  std::optional<Error> lost_;
  kj::Promise<void> watching_ = nullptr;
};

}  // namespace dtf::wire
