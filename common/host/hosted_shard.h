#pragma once

// A shard that a task hosts, with the threads that serve it. The task is a ps or, in a job without
// ps or with a hybrid placement, a worker, which trains in other threads.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/host/ps_server.h"
#include "common/net/listener.h"
#include "common/net/reactor.h"

namespace dtf::host {

// Owns: the server of the shard, and the threads of its bulk connections and its files.
// Borrows: `control` and its `reactor` (must outlive this).
// Threads: all calls on the control loop.
// Blocks: the destructor, until the updates and the files under way are done.
class HostedShard {
 public:
  // `task`: the task of this process; cluster::ClusterSpec::shardHosts() has its shard.
  // `chunk_bytes`: see wire::LinkOptions.
  // Errors: as PsServer.
  HostedShard(const cluster::TaskOptions& task, net::Reactor& reactor, net::Loop& control,
              const net::Credentials& credentials, uint64_t chunk_bytes = wire::kChunkBytesMax);
  ~HostedShard() noexcept(false);

  // Serves a connection. `extend`: for a control connection, see PsServer::serveControl().
  void serve(net::AcceptedSocket socket, net::ConnectionKind kind, std::string peer,
             const PsServer::Extend& extend = nullptr);

  // Returns the exit code of this shard's host, or throws the error that ended it, see
  // PsServer::result(). Removes the snapshots of the shard if the job has ended well.
  int result();

  PsServer& server() { return *server_; }

 private:
  net::Reactor& reactor_;
  std::unique_ptr<PsServer> server_;
  net::IoThread disk_;
  net::IoThread data_;  // both end before the members above
};

}  // namespace dtf::host
