#pragma once

// A shard with a replica, for tests of its workers' view when its process is lost and another takes
// its place.

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <variant>

#include "tests/unit/shard/replica_keeper.h"

namespace dtf::shard {

inline constexpr Incarnation kReplicatedChief{1};

// One ps with its keeper. The ps's process may be lost, with all its state.
class Replicated {
 public:
  Replicated(uint32_t workers, uint32_t aggregate, uint64_t steps,
             std::optional<uint32_t> staleness = std::nullopt, const arena::EpochData& epochs = {})
      : workers_(workers),
        aggregate_(aggregate),
        steps_(steps),
        staleness_(staleness),
        epochs_(epochs),
        keeper(workers) {
    start(true);
    driver().shard.backup().onBackup();
    keeper.deliverAll();
  }

  ShardDriver& driver() { return *driver_; }

  // Returns the error that the chief gets, if any.
  std::optional<Error> loseAndRefill(uint64_t epoch = replication::kFirstEpoch) {
    ++life_;
    keeper.primaryIsLost(Incarnation{life_});
    start(false);
    driver().shard.backup().onBackup();
    std::optional<Error> error;
    driver().shard.recovery().refill(kReplicatedChief, epoch,
                                     [&](const replication::WaitAnswer& answer) {
                                       if (const Error* e = std::get_if<Error>(&answer)) error = *e;
                                     });
    keeper.deliverAll();
    return error;
  }

 private:
  void start(bool initialised) {
    driver_ = std::make_unique<ShardDriver>(workers_, aggregate_, steps_, 0, 1, false, initialised,
                                            cluster::OptimizerSpec::Kind::kGradientDescent,
                                            std::chrono::seconds(60), &keeper, staleness_, joins,
                                            epochs_);
    keeper.model = driver_->model;
    keeper.heard = [this](uint64_t ticket) { driver_->shard.backup().onHeard(ticket); };
  }

  const uint32_t workers_;
  const uint32_t aggregate_;
  const uint64_t steps_;
  const std::optional<uint32_t> staleness_;  // in bounded mode
  const arena::EpochData epochs_;
  uint64_t life_ = 1;
  std::unique_ptr<ShardDriver> driver_;

 public:
  ReplicaKeeper keeper;
  std::optional<std::set<uint32_t>> joins;  // ranks that join the next ps at once; nullopt: all
};

}  // namespace dtf::shard
