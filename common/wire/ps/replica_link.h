#pragma once

// A ps's connection to the ps that keeps the replica of its shard (PsReplica in ps.capnp).

#include <kj/async.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/net/loop.h"
#include "common/replication/replicator.h"
#include "common/wire/healing_connection.h"
#include "common/wire/ps.capnp.h"
#include "common/wire/ps/ps_link.h"

namespace dtf::wire {

// Sends seeds and updates to the keeper of the replica. The connection is made when the model is
// declared, and again when it breaks.
// Owns: the connection, and the messages without a reply.
// Borrows: `loop` (must outlive this).
// Threads: loop-thread only.
// Blocks: never.
// Errors: through `on_lost`, once: the keeper has not answered for timeouts.rejoin_seconds (at
// first: start_seconds), or has rejected this ps.
class PsReplicaLink final : public replication::ReplicaLink {
 public:
  struct Events {
    // A new process of the keeper has answered a hello. It has no replica.
    std::function<void()> on_backup;
    std::function<void(uint64_t ticket)> on_heard;
    std::function<void(const Error&)> on_lost;
  };
  // `self`: the options of a ps. `keeper`: the ps task with its replica, at `address`.
  PsReplicaLink(net::Loop& loop, LinkOptions self, uint32_t keeper, cluster::Address address,
                Events events);
  ~PsReplicaLink() noexcept override;

  void open(uint64_t elements) override;
  void seed(uint64_t ticket, const replication::ReplicaSeed& seed) override;
  void update(uint64_t ticket, const replication::ReplicaUpdate& update) override;
  void fetch(std::function<void(std::variant<replication::ReplicaSeed, Error>)> fetched) override;
  bool isAway() const override { return connection_.brokenSince().has_value(); }

 private:
  kj::Promise<void> sayHello(net::RpcConnection& connection);
  void onOpen();
  kj::Promise<void> sayArena(uint32_t index, std::span<const float> arena,
                             const std::shared_ptr<const void>& owner);
  void say(uint64_t ticket, std::function<kj::Promise<void>()> call, uint64_t bytes);
  kj::Promise<std::shared_ptr<replication::ReplicaSeed>> fetchAll();
  void answerFetches(const std::variant<replication::ReplicaSeed, Error>& fetched);
  kj::Promise<void> fetchInto(std::shared_ptr<replication::ReplicaSeed> seed, uint32_t index);
  kj::Promise<void> answered(kj::Promise<void> answer, uint64_t bytes);
  void lost(const Error& error);

  net::Loop& loop_;
  const LinkOptions options_;
  const TaskId keeper_;
  const std::string peer_;
  Events events_;
  uint64_t elements_ = 0;
  uint32_t hellos_said_ = 0;
  Incarnation met_;      // the newest process of the keeper that has answered a hello
  Incarnation greeted_;  // the process that has answered the last hello
  bool opened_ = false;
  kj::ForkedPromise<void> linked_ = nullptr;          // the first hello was answered
  std::optional<schema::PsReplica::Client> replica_;  // of the last hello
  uint64_t ticket_ = 0;                               // of the last message
  std::vector<std::function<void(std::variant<replication::ReplicaSeed, Error>)>> fetching_;
  HealingConnection connection_;
  kj::Own<kj::TaskSet::ErrorHandler> error_handler_;
  kj::TaskSet tasks_;
};

}  // namespace dtf::wire
