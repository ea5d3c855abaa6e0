#pragma once

// The link of a shard to its replica, without a network: messages wait until deliver().

#include <deque>
#include <functional>
#include <memory>
#include <variant>

#include "common/shard/shard.h"
#include "common/shard/shard_replica.h"
#include "tests/unit/shard/shard_driver.h"

namespace dtf::shard {

class ReplicaKeeper final : public replication::ReplicaLink {
 public:
  explicit ReplicaKeeper(uint32_t workers = 2) : workers_(workers) { startAgain(); }

  // Replaces the ps that keeps the replica by a new process, which keeps nothing.
  void startAgain() {
    said_.clear();
    replica_ =
        std::make_unique<ShardReplica>(0, TaskId{JobKind::kPs, 0}, workers_, runner_, calls_);
    replica_->meet(primary);
  }

  void open(uint64_t) override {}
  void seed(uint64_t ticket, const replication::ReplicaSeed& seed) override {
    ++seeds;
    said_.push_back([this, ticket, seed] {
      replica_->seed(primary, model, seed);
      heard(ticket);
    });
  }
  void update(uint64_t ticket, const replication::ReplicaUpdate& update) override {
    ++updates;
    said_.push_back([this, ticket, update] {
      replica_->update(primary, update, [this, ticket] { heard(ticket); });
    });
  }
  void fetch(std::function<void(std::variant<replication::ReplicaSeed, Error>)> fetched) override {
    said_.push_back([this, fetched = std::move(fetched)] {
      try {
        replica_->fetch(primary, fetched);
      } catch (const Error& error) {
        fetched(error);
      }
    });
  }
  bool isAway() const override { return is_away; }

  // Delivers one message; false: none was sent.
  bool deliver() {
    if (said_.empty()) return false;
    const std::function<void()> next = std::move(said_.front());
    said_.pop_front();
    next();
    return true;
  }
  void deliverAll() {
    while (deliver()) continue;
  }

  // The process of the shard's ps is lost: its messages on the way don't arrive.
  void primaryIsLost(Incarnation successor) {
    said_.clear();
    primary = successor;
    replica_->meet(successor);
  }

  ShardReplica& replica() { return *replica_; }

  Incarnation primary{1};  // the process of the shard's ps
  arena::ModelDeclaration model;
  std::function<void(uint64_t)> heard = [](uint64_t) {};
  int seeds = 0;    // sent
  int updates = 0;  // sent
  bool is_away = false;
  HeldRunner runner_;

 private:
  const uint32_t workers_;
  replication::OutwardCalls calls_;
  std::unique_ptr<ShardReplica> replica_;
  std::deque<std::function<void()>> said_;
};

}  // namespace dtf::shard
