#pragma once

// A shard with a replica, in tests of what its workers see when its process is lost and another
// takes its place.

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <variant>

#include "tests/unit/ps/replica_keeper.h"

namespace dtf::ps {

inline constexpr Incarnation kReplicatedChief{1};

// One ps with its keeper. The process may be lost: what it had is gone.
class Replicated {
 public:
  Replicated(uint32_t workers, uint32_t aggregate, uint64_t steps,
             std::optional<uint32_t> staleness = std::nullopt)
      : workers_(workers),
        aggregate_(aggregate),
        steps_(steps),
        staleness_(staleness),
        keeper(workers) {
    start(true);
    driver().shard.onReplicaBackup();
    keeper.deliverAll();
  }

  ShardDriver& driver() { return *driver_; }

  // Returns what the chief was answered.
  std::optional<Error> loseAndRefill(uint64_t epoch = kFirstEpoch) {
    ++life_;
    keeper.primaryIsLost(Incarnation{life_});
    start(false);
    driver().shard.onReplicaBackup();
    std::optional<Error> error;
    driver().shard.refill(kReplicatedChief, epoch, [&](const WaitAnswer& answer) {
      if (const Error* e = std::get_if<Error>(&answer)) error = *e;
    });
    keeper.deliverAll();
    return error;
  }

 private:
  void start(bool initialised) {
    driver_ = std::make_unique<ShardDriver>(workers_, aggregate_, steps_, 0, 1, false, initialised,
                                            cluster::OptimizerSpec::Kind::kGradientDescent,
                                            std::chrono::seconds(60), &keeper, staleness_, joins);
    keeper.model = driver_->model;
    keeper.heard = [this](uint64_t ticket) { driver_->shard.onReplicaHeard(ticket); };
  }

  const uint32_t workers_;
  const uint32_t aggregate_;
  const uint64_t steps_;
  const std::optional<uint32_t> staleness_;  // bounded
  uint64_t life_ = 1;
  std::unique_ptr<ShardDriver> driver_;

 public:
  ReplicaKeeper keeper;
  std::optional<std::set<uint32_t>> joins;  // the ps that comes next, at once; none: all
};

}  // namespace dtf::ps
