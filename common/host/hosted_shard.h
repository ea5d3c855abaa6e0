#pragma once

// A shard that a task hosts, with the threads that serve it: what psd is about, and what a worker
// does beside its training in a job without ps or with a hybrid placement.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/host/ps_server.h"
#include "common/net/listener.h"
#include "common/net/reactor.h"

namespace dtf::host {

// Owns: the server of the shard, and the threads of its bulk connections and its files.
// Borrows: `control` and `reactor`, which is that loop's (must outlive this).
// Threads: all calls on the control loop.
// Blocks: the destructor, until the updates and the files under way are done.
class HostedShard {
 public:
  // `task`: of the process; see cluster::ClusterSpec::shardHosts() for its shard.
  // `chunk_bytes`: see wire::LinkOptions.
  // Errors: as PsServer.
  HostedShard(const cluster::TaskOptions& task, net::Reactor& reactor, net::Loop& control,
              const net::Credentials& credentials, uint64_t chunk_bytes = wire::kChunkBytesMax);
  ~HostedShard() noexcept(false);

  // Serves a connection. `extend`: of a control connection, see PsServer::serveControl().
  void serve(net::AcceptedSocket socket, net::ConnectionKind kind, std::string peer,
             const PsServer::Extend& extend = nullptr);

  // Returns the exit code of the shard's part in the job, or throws the error that ended it, see
  // PsServer::result(). Removes snapshots that nobody needs any more.
  int result();

  PsServer& server() { return *server_; }

 private:
  net::Reactor& reactor_;
  std::unique_ptr<PsServer> server_;
  net::IoThread disk_;
  net::IoThread data_;  // both end before the members above
};

}  // namespace dtf::host
