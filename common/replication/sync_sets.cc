// Third part of SyncCoordinator: the gradients of a step.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/replication/membership.h"
#include "common/replication/replication_rules.h"
#include "common/replication/sync_coordinator.h"

namespace dtf::replication {

namespace {

struct HeldBatch {
  const arena::Gradient& gradient;
  float loss = 0;
  uint32_t examples = 1;
};

// The gradients of a step, and the mean of their losses by the same weights.
struct StepSet {
  std::vector<arena::Gradient> gradients;
  float loss = 0;
};

// Weights gradients by their numbers of examples, unless all are equal. A set has examples.
StepSet weighed(const std::vector<HeldBatch>& batches) {
  const bool equal = std::ranges::all_of(
      batches, [&](const HeldBatch& each) { return each.examples == batches[0].examples; });
  StepSet set;
  double loss_sum = 0, weights = 0;
  for (const HeldBatch& batch : batches) {
    const uint32_t weight = equal ? 1 : batch.examples;
    if (weight == 0) continue;
    set.gradients.push_back(batch.gradient);
    set.gradients.back().weight = weight;
    loss_sum += double{batch.loss} * weight;
    weights += weight;
  }
  DTF_CHECK(!equal || batches[0].examples > 0);
  set.loss = static_cast<float>(loss_sum / weights);
  return set;
}

}  // namespace

void SyncCoordinator::startUpdate(std::vector<uint32_t> ranks) {
  DTF_CHECK(!updater_.busy() && !ranks.empty());
  DTF_CHECK(std::is_sorted(ranks.begin(), ranks.end()));  // gradients are summed in this order
  std::vector<HeldBatch> batches;
  for (const uint32_t rank : ranks)
    for (uint32_t batch = 0; batch < workers_[rank].batches.size(); ++batch) {
      batches.push_back({workers_[rank].batches[batch].value(), workers_[rank].losses[batch],
                         shares_.pushedExamples(step(), rank, batch)});
    }
  StepSet set = weighed(batches);
  set_loss_ = set.loss;
  UpdateNote note{{}, set_loss_};
  if (context_.replicator != nullptr)  // only a replica remembers it
    for (const uint32_t rank : ranks) note.pushes.push_back({rank, {}, step()});
  try {
    updater_.start(std::move(set.gradients), std::move(note),
                   [this, ranks = std::move(ranks)] { onCommitted(ranks); });
  } catch (const Error& error) {  // the device failed: its parameters are lost
    failAll(error);
  }
}

// Starts the update of the step when its gradients are here.
void SyncCoordinator::advance() {
  if (updater_.busy() || !context_.store.initialised() || isDone()) return;
  if (!hasBackups()) {
    if (held_ < pushes_) return;
    std::vector<uint32_t> everyone;
    for (uint32_t rank = 0; rank < workers_.size(); ++rank)
      if (!workers_[rank].batches.empty()) everyone.push_back(rank);
    return startUpdate(std::move(everyone));
  }
  if (decided_) return onDecision(step(), std::exchange(decided_, std::nullopt).value());
  if (!leads()) return;
  const uint32_t needed = shares_.needed(step(), [this](uint32_t rank) {
    return decider_.isEverywhere(rank) || !gone_.givenUp(rank);
  });
  std::optional<std::vector<uint32_t>> ranks =
      decider_.decide(needed, [this](uint32_t rank) { return shares_.counts(step(), rank); });
  if (!ranks) return;
  if (context_.ps_tasks > 1 && !announcesAfterwards()) {
    context_.calls.add([peers = context_.peers, at = StepName{context_.epoch, step()},
                        ranks = *ranks] { peers->announceDecision(at, ranks); });
  }
  startUpdate(std::move(*ranks));
}

// Reports to ps/0, or within it.
void SyncCoordinator::report(uint32_t rank) {
  if (leads()) return decider_.received(context_.ps_task, rank);
  context_.calls.add([peers = context_.peers, at = StepName{context_.epoch, step()}, rank] {
    peers->reportReceived(at, rank);
  });
}

void SyncCoordinator::onLeaderLinked() {
  const OutwardCalls::Scope scope(context_.calls);
  if (!hasBackups() || leads() || updater_.busy() || isDone()) return;
  for (uint32_t rank = 0; rank < workers_.size(); ++rank)
    if (workers_[rank].complete()) report(rank);
}

// A gradient that a follower lost with its process must not be in a set that is still to be
// decided: its worker may be gone, too, and then only some ps could have the set.
void SyncCoordinator::onFollowerLinked(uint32_t ps_task) {
  DTF_CHECK(ps_task > 0 && ps_task < context_.ps_tasks);
  if (hasBackups() && leads() && !updater_.busy()) decider_.forget(ps_task);
}

void SyncCoordinator::onReceived(uint32_t ps_task, uint64_t of_step, uint32_t rank) {
  const OutwardCalls::Scope scope(context_.calls);
  const bool sane = hasBackups() && leads() && ps_task < context_.ps_tasks &&
                    rank < workers_.size() && of_step <= step();
  if (!sane) {
    throw Error(ErrorCode::kBadData,
                fmt::format("{} reported to {} a gradient of {} for step {}, which is out of "
                            "order: {} is at step {}",
                            context_.hosts.of(ps_task).name(), context_.host().name(),
                            workerName(rank), of_step, context_.host().name(), step()));
  }
  // Repeats the decision for a follower that lost it with its process.
  if (of_step + 1 == step() && announcesAfterwards()) announceLast();
  if (of_step < step() || updater_.busy() || isDone()) return;
  decider_.received(ps_task, rank);
  advance();
}

void SyncCoordinator::onDecision(uint64_t of_step, const std::vector<uint32_t>& ranks) {
  const OutwardCalls::Scope scope(context_.calls);
  if (of_step < step()) return;  // repeated
  if (of_step == step() && updater_.busy()) return;
  bool sane =
      hasBackups() && !leads() && of_step == step() && !isDone() && shares_.canBeSet(step(), ranks);
  const bool holds_all = sane && std::all_of(ranks.begin(), ranks.end(), [this](uint32_t rank) {
                           return workers_[rank].complete();
                         });
  // An earlier process of this ps reported these gradients; the workers will send them again.
  if (sane && !holds_all && context_.replicator != nullptr) {
    decided_ = ranks;
    return;
  }
  sane = holds_all;
  if (!sane) {
    throw Error(ErrorCode::kBadData,
                fmt::format("{} at step {} can't follow the decision that step {} is made of "
                            "{}: it doesn't hold these gradients",
                            context_.host().name(), step(), of_step, workerNames(ranks)));
  }
  startUpdate(ranks);
}

// With a replica, a decision is announced once both shards have the update: a process of ps/0
// filled from the replica must not decide otherwise.
bool SyncCoordinator::announcesAfterwards() const {
  return context_.replicator != nullptr && hasBackups() && leads() && context_.ps_tasks > 1;
}

// Reads the epoch when the call is made: it may be about to begin.
void SyncCoordinator::announceLast() {
  std::vector<uint32_t> ranks;
  for (uint32_t rank = 0; rank < workers_.size(); ++rank)
    if (workers_[rank].wasInSet(1)) ranks.push_back(rank);
  if (ranks.empty()) return;
  DTF_CHECK(step() > 0 && ranks.size() <= needed_);  // a short step takes fewer
  context_.calls.add([peers = context_.peers, epoch = &context_.epoch, ranks = std::move(ranks),
                      of_step = step() - 1] {
    peers->announceDecision({*epoch, of_step}, ranks);
  });
}

}  // namespace dtf::replication
