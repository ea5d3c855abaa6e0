#pragma once

// One shard with `workers` joined, initialised with zeros, and a record of every reply.

#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/shard/shard.h"

namespace dtf::shard {

// Holds updates of large arenas back until finish().
class HeldRunner final : public optimizer::UpdateRunner {
 public:
  static constexpr uint64_t kLargeElements = 512;
  uint64_t inPlaceBytesMax() const override { return (kLargeElements - 1) * sizeof(float); }
  void start(std::shared_ptr<optimizer::UpdateJob> job, std::function<void()> done) override {
    held_.push_back([job, done = std::move(done)] {
      job->runAll();
      done();
    });
  }
  bool finish() {
    if (held_.empty()) return false;
    const std::function<void()> next = std::move(held_.front());
    held_.pop_front();
    next();
    return true;
  }

 private:
  std::deque<std::function<void()>> held_;
};

struct RecordedPeers final : replication::SyncPeers {
  void reportReceived(replication::StepName step, uint32_t rank) override {
    reports.push_back(std::to_string(step.step) + ":" + std::to_string(rank));
  }
  void announceDecision(replication::StepName step, const std::vector<uint32_t>& ranks) override {
    decisions.emplace_back(step.step, ranks);
  }
  std::vector<std::string> reports;
  std::vector<std::pair<uint64_t, std::vector<uint32_t>>> decisions;
};

// The name of a step in a shard that never went back.
inline replication::StepName stepName(uint64_t step) {
  return {replication::kFirstEpoch, step};
}

// The outcome of one call.
struct Recorded {
  std::shared_ptr<replication::PushAnswer> answer;  // null: it waits
  bool waits() const { return answer == nullptr; }
  const replication::StepState& state() const {
    return std::get<replication::PushReply>(*answer).state;
  }
  float value() const { return std::get<replication::PushReply>(*answer).parameters->data()[0]; }
  // Returns the error's message, or "" when the call waits or succeeded.
  std::string error() const {
    const Error* error = answer ? std::get_if<Error>(answer.get()) : nullptr;
    return error == nullptr ? "" : error->message();
  }
};

class ShardDriver {
 public:
  // `aggregate` 0: async. `large`: arenas too large to be updated in place. Not `initialised`: the
  // shard is to be restored.
  ShardDriver(
      uint32_t workers, uint32_t aggregate, uint64_t steps, uint32_t ps_task = 0,
      uint32_t ps_tasks = 1, bool large = false, bool initialised = true,
      cluster::OptimizerSpec::Kind optimizer = cluster::OptimizerSpec::Kind::kGradientDescent,
      Duration rejoin = {}, replication::ReplicaLink* replica = nullptr,
      std::optional<uint32_t> staleness = std::nullopt,
      const std::optional<std::set<uint32_t>>& joins = std::nullopt,
      const arena::EpochData& epochs = {}, const std::vector<uint32_t>& host_leaders = {})
      : elements(large ? HeldRunner::kLargeElements : 16),
        shard(ShardOptions{.ps_task = ps_task,
                           .ps_tasks = ps_tasks,
                           .workers = workers,
                           .rejoin_timeout = rejoin},
              clock, runner, &peers, replica) {
    std::vector<arena::VariableParts> variables;
    for (uint32_t ps = 0; ps < ps_tasks; ++ps) {
      variables.push_back(
          {"v" + std::to_string(ps), Shape{static_cast<int64_t>(elements)}, {{ps, 0, elements}}});
    }
    model.layout = arena::makeLayout(variables, ps_tasks);
    model.optimizer = cluster::defaultOptimizer(optimizer);
    model.optimizer.learning_rate = 1;
    model.steps = steps;
    model.epochs = epochs;
    if (aggregate > 0) {
      model.replication = {cluster::ReplicationSpec::Mode::kSync, aggregate, workers};
      model.replication.host_leaders = host_leaders;
    }
    if (staleness)
      model.replication = {.mode = cluster::ReplicationSpec::Mode::kBounded,
                           .staleness = *staleness};
    for (uint32_t rank = 0; rank < workers; ++rank)
      if (!joins || joins->contains(rank)) shard.workers().join(rank, Incarnation{1});
    shard.workers().declare(0, Incarnation{1}, model);
    if (initialised) shard.initialise(0, Incarnation{1}, std::vector<float>(elements));
  }

  // The only ps, small; it waits `rejoin` for the return of lost workers.
  ShardDriver(uint32_t workers, uint32_t aggregate, uint64_t steps, std::chrono::seconds rejoin)
      : ShardDriver(workers, aggregate, steps, 0, 1, false, true,
                    cluster::OptimizerSpec::Kind::kGradientDescent, rejoin) {}

  std::shared_ptr<Recorded> pull(uint32_t rank, uint64_t incarnation = 1,
                                 const replication::Wanted& wanted = {}) {
    auto recorded = std::make_shared<Recorded>();
    shard.pull(rank, Incarnation{incarnation}, wanted, recorder(recorded));
    return recorded;
  }

  std::shared_ptr<Recorded> pullAverages(uint32_t rank) {
    auto recorded = std::make_shared<Recorded>();
    shard.pullAside(rank, Incarnation{1}, Shard::Aside::kAverages, recorder(recorded));
    return recorded;
  }

  // One of the ps of a bounded job.
  struct Bounded {
    uint32_t staleness = 0;
  };
  ShardDriver(Bounded bounded, uint32_t workers, uint64_t steps, uint32_t ps_task = 0,
              uint32_t ps_tasks = 1)
      : ShardDriver(workers, 0, steps, ps_task, ps_tasks, false, true,
                    cluster::OptimizerSpec::Kind::kGradientDescent, {}, nullptr,
                    bounded.staleness) {}

  // The only ps of a job in which each example counts once an epoch.
  ShardDriver(const arena::EpochData& epochs, uint32_t workers, uint32_t aggregate, uint64_t steps,
              Duration rejoin = {}, std::optional<uint32_t> staleness = std::nullopt)
      : ShardDriver(workers, aggregate, steps, 0, 1, false, true,
                    cluster::OptimizerSpec::Kind::kGradientDescent, rejoin, nullptr, staleness,
                    std::nullopt, epochs) {}

  // The only ps of a sync job with sums by host: the leader of each worker.
  struct Hosts {
    std::vector<uint32_t> leaders;
  };
  ShardDriver(const Hosts& hosts, uint64_t steps, Duration rejoin = {},
              const arena::EpochData& epochs = {})
      : ShardDriver(static_cast<uint32_t>(hosts.leaders.size()),
                    static_cast<uint32_t>(hosts.leaders.size()), steps, 0, 1, false, true,
                    cluster::OptimizerSpec::Kind::kGradientDescent, rejoin, nullptr, std::nullopt,
                    std::nullopt, epochs, hosts.leaders) {}

  // Pushes a gradient that adds `amount` to every parameter when applied alone.
  std::shared_ptr<Recorded> push(uint32_t rank, uint64_t step, float amount = 1, uint32_t batch = 0,
                                 uint64_t incarnation = 1,
                                 uint64_t epoch = replication::kFirstEpoch) {
    return pushSized(rank, step, amount, batch, incarnation, elements, epoch);
  }
  // Pushes in a bounded job, for a worker whose clock ps/0 has set to `progress`.
  std::shared_ptr<Recorded> pushAt(uint64_t progress, uint32_t rank, uint64_t step,
                                   uint64_t incarnation = 1) {
    return pushSized(rank, step, 1, 0, incarnation, elements, replication::kFirstEpoch, progress);
  }
  std::shared_ptr<Recorded> pushSized(uint32_t rank, uint64_t step, float amount, uint32_t batch,
                                      uint64_t incarnation, uint64_t size,
                                      uint64_t epoch = replication::kFirstEpoch,
                                      uint64_t progress = 0) {
    auto values = std::make_shared<std::vector<float>>(size, -amount);
    auto recorded = std::make_shared<Recorded>();
    shard.push({.rank = rank,
                .incarnation = Incarnation{incarnation},
                .step = step,
                .batch = batch,
                .epoch = epoch,
                .progress = progress,
                .sequence = 0,
                .gradient = *values,
                .owner = values},
               recorder(recorded));
    return recorded;
  }

  const uint64_t elements;
  ManualClock clock;
  HeldRunner runner;
  RecordedPeers peers;
  arena::ModelDeclaration model;
  Shard shard;

 private:
  static replication::PushCallback recorder(const std::shared_ptr<Recorded>& recorded) {
    return [recorded](const replication::PushAnswer& answer) {
      DTF_CHECK(recorded->answer == nullptr);
      recorded->answer = std::make_shared<replication::PushAnswer>(answer);
    };
  }
};

}  // namespace dtf::shard
