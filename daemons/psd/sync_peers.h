#pragma once

// What passes between the ps of a job when sync training has backup workers: ps/0 decides which
// workers make up a step, among those whose gradients are on every ps. See SyncLeader and
// SyncFollower in common/wire/ps.capnp.

#include <kj/async.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "common/net/loop.h"
#include "common/net/rpc_connection.h"
#include "common/wire/ps_link.h"
#include "daemons/psd/shard_host.h"

namespace dtf::psd {

// The control loop's end of both roles. The shard (data loop) speaks through ShardPeers below.
// Owns: on a follower, the connection to ps/0; on ps/0, the followers' capabilities.
// Borrows: `control`.
// Threads: control loop only.
class PeerNetwork {
 public:
  PeerNetwork(net::Loop& control, wire::LinkOptions self, std::vector<cluster::Address> ps);

  // Calls from other ps go to `host`'s shard. To be set before the first connection is served.
  void serve(ShardHost& host) { host_ = &host; }

  // The capability that ps/0 gives to followers.
  schema::SyncLeader::Client leader();

  // From this ps's shard, by way of ShardPeers.
  void sendReceived(uint64_t step, uint32_t rank);
  void sendDecision(uint64_t step, const std::vector<uint32_t>& ranks);

  ShardHost& host() { return *host_; }
  void addFollower(TaskId task, schema::SyncFollower::Client follower);

 private:
  kj::Promise<schema::SyncLeader::Client> connect();

  net::Loop& control_;
  const wire::LinkOptions self_;
  const std::vector<cluster::Address> ps_;
  ShardHost* host_ = nullptr;
  std::unique_ptr<net::RpcConnection> connection_;  // follower: to ps/0
  std::optional<kj::ForkedPromise<schema::SyncLeader::Client>> leader_;
  struct Decision {
    uint64_t step;
    std::vector<uint32_t> ranks;
  };
  std::map<uint32_t, schema::SyncFollower::Client> followers_;  // leader: by ps task
  std::map<uint32_t, std::vector<Decision>> unsent_;            // decided before the follower came
  kj::Own<kj::TaskSet::ErrorHandler> error_handler_;
  kj::TaskSet tasks_;
};

// The shard's view: posts to the control loop. Data loop only.
class ShardPeers final : public ps::SyncPeers {
 public:
  ShardPeers(net::Loop& control, PeerNetwork& network) : control_(control), network_(network) {}
  void reportReceived(uint64_t step, uint32_t rank) override;
  void announceDecision(uint64_t step, const std::vector<uint32_t>& ranks) override;

 private:
  net::Loop& control_;
  PeerNetwork& network_;
};

}  // namespace dtf::psd
