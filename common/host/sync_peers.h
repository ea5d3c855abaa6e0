#pragma once

// The messages between the ps of a job with sync training and backup workers. The leader, ps/0,
// decides which workers make up a step, from the workers with a gradient on every ps. See
// SyncLeader and SyncFollower in common/wire/ps.capnp.

#include <kj/async.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/host/shard_host.h"
#include "common/net/loop.h"
#include "common/net/rpc_connection.h"
#include "common/wire/ps/ps_link.h"

namespace dtf::host {

// The control loop's end of the connections, in both roles. The shard, on the data loop, uses it
// through ShardPeers below.
//
// Each end keeps a message until the other end acknowledges it, and sends it again over the next
// connection if one breaks. Both ends ignore repeated messages, so every message arrives and has
// its effect once. A follower makes the connection, and makes it again while it has anything to
// send or to receive.
//
// Owns: on a follower, the connection to ps/0; on ps/0, the followers' capabilities.
// Borrows: `control`.
// Threads: control loop only.
// Blocks: never.
// Errors: through `on_lost`, once: kUnavailable with the name of the link, when ps/0 rejects a
// message, or can't be reached (at first within start_seconds; after a break within the longer of
// rejoin_seconds and the lease).
class PeerNetwork {
 public:
  using OnLost = std::function<void(const Error&)>;

  PeerNetwork(net::Loop& control, wire::LinkOptions self, std::vector<cluster::Address> ps,
              OnLost on_lost);
  ~PeerNetwork() noexcept(false);

  // Passes calls from other ps to the shard of `host`. Comes before the first connection is served.
  void serve(ShardHost& host) { host_ = &host; }

  // The messages of this ps's shard, by way of ShardPeers: a follower's to ps/0, and the leader's
  // to every follower.
  void sendReceived(replication::StepName step, uint32_t rank);
  void sendDecision(replication::StepName step, const std::vector<uint32_t>& ranks);

  ShardHost& host() { return *host_; }
  const wire::LinkOptions& self() const { return self_; }
  // On ps/0: accepts a connection, the first or a later one, from a process of follower `task`.
  // Returns the capability for its reports. A newer process replaces and fences the earlier ones.
  // Errors: kBadConfig if this is not ps/0, or `task` is no other ps of the job; kUnavailable
  // ("fenced: ...") for an earlier process.
  schema::SyncLeader::Client follow(TaskId task, Incarnation incarnation,
                                    schema::SyncFollower::Client follower);
  // Errors: kUnavailable ("fenced: ...") unless this is the newest process of the follower.
  void checkNewest(uint32_t ps_task, Incarnation incarnation) const;
  // On a follower: ps/0 has announced the decision of `step`.
  void onDecided(replication::StepName step) {
    decided_ = std::max<std::optional<replication::StepName>>(decided_, step);
  }

 private:
  struct Report {
    replication::StepName step;
    uint32_t rank = 0;
    bool operator==(const Report&) const = default;
  };
  struct Decision {
    replication::StepName step;
    std::vector<uint32_t> ranks;
    bool operator==(const Decision&) const = default;
  };
  struct Link;

  void checkFollower(TaskId task) const;
  bool isLeader() const { return self_.self.index == 0; }
  bool needsLink() const { return !unanswered_.empty() || decided_ < reported_; }
  kj::Promise<void> keepLinked(Duration patience);
  kj::Promise<void> connect(Duration patience);
  kj::Promise<void> untilBroken();
  void report(const Report& report);
  void onReportFailed(const Report& report, uint64_t link, const kj::Exception& exception);
  void announce(uint32_t task, const Decision& decision);
  void lost(const Error& error);

  net::Loop& control_;
  const wire::LinkOptions self_;
  const std::vector<cluster::Address> ps_;
  const std::string peer_;  // "ps/0 (localhost:2222)"
  const Duration lease_;
  const Duration patience_;  // for the connection after one that broke
  OnLost on_lost_;
  ShardHost* host_ = nullptr;

  // Follower.
  std::unique_ptr<Link> link_;  // null: there is none at the moment
  Incarnation met_;             // the last process of ps/0 that answered
  uint64_t links_made_ = 0;
  uint32_t hellos_said_ = 0;
  std::deque<Report> unanswered_;
  std::optional<replication::StepName> reported_;  // the last step with a reported gradient
  std::optional<replication::StepName> decided_;   // the last step with a received decision
  bool linking_ = false;                           // keepLinked() is under way

  // Leader, by ps task.
  std::map<uint32_t, schema::SyncFollower::Client> followers_;
  std::map<uint32_t, Incarnation> newest_;                   // the newest process
  std::map<uint32_t, std::deque<Decision>> unacknowledged_;  // not answered by the follower

  kj::Own<kj::TaskSet::ErrorHandler> error_handler_;
  kj::TaskSet tasks_;
};

// The shard's view of a PeerNetwork: posts its messages to the control loop.
// Borrows: `control`, `network` (must outlive the posted calls).
// Threads: data loop only.
class ShardPeers final : public replication::SyncPeers {
 public:
  ShardPeers(net::Loop& control, PeerNetwork& network) : control_(control), network_(network) {}
  void reportReceived(replication::StepName step, uint32_t rank) override;
  void announceDecision(replication::StepName step, const std::vector<uint32_t>& ranks) override;

 private:
  net::Loop& control_;
  PeerNetwork& network_;
};

}  // namespace dtf::host
