#pragma once

// The link of a shard to its replica, without a network: what is said waits until deliver().

#include <deque>
#include <functional>
#include <memory>
#include <variant>

#include "common/ps/shard.h"
#include "common/ps/shard_replica.h"
#include "tests/unit/ps/shard_driver.h"

namespace dtf::ps {

class ReplicaKeeper final : public ReplicaLink {
 public:
  explicit ReplicaKeeper(uint32_t workers = 2) : workers_(workers) { startAgain(); }

  // Another process of the ps that keeps the replica: it keeps nothing.
  void startAgain() {
    said_.clear();
    replica_ = std::make_unique<ShardReplica>(0, workers_, runner_, calls_);
    replica_->meet(primary);
  }

  void open(uint64_t) override {}
  void seed(uint64_t ticket, const ReplicaSeed& seed) override {
    ++seeds;
    said_.push_back([this, ticket, seed] {
      replica_->seed(primary, model, seed);
      heard(ticket);
    });
  }
  void update(uint64_t ticket, const ReplicaUpdate& update) override {
    ++updates;
    said_.push_back([this, ticket, update] {
      replica_->update(primary, update, [this, ticket] { heard(ticket); });
    });
  }
  void fetch(std::function<void(std::variant<ReplicaSeed, Error>)> fetched) override {
    said_.push_back([this, fetched = std::move(fetched)] {
      try {
        replica_->fetch(primary, fetched);
      } catch (const Error& error) {
        fetched(error);
      }
    });
  }
  bool isAway() const override { return is_away; }

  // One message arrives. False: nothing was said.
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

  // The process of the shard's ps is lost: what it said last does not arrive.
  void primaryIsLost(Incarnation successor) {
    said_.clear();
    primary = successor;
    replica_->meet(successor);
  }

  ShardReplica& replica() { return *replica_; }

  Incarnation primary{1};  // the process of the shard's ps
  ModelDeclaration model;
  std::function<void(uint64_t)> heard = [](uint64_t) {};
  int seeds = 0;    // said
  int updates = 0;  // said
  bool is_away = false;
  HeldRunner runner_;

 private:
  const uint32_t workers_;
  OutwardCalls calls_;
  std::unique_ptr<ShardReplica> replica_;
  std::deque<std::function<void()>> said_;
};

}  // namespace dtf::ps
