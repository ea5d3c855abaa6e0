#include "common/shard/shard_peers.h"

#include <fmt/format.h>

#include <utility>

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/replication/epoch.h"
#include "common/replication/membership.h"

namespace dtf::shard {

ShardPeers::ShardPeers(const ShardOptions& options, replication::OutwardCalls& calls,
                       ShardValues& values)
    : options_(options), calls_(calls), values_(values) {}

// Keeps a report of a later epoch until this shard is there: a follower may enter one first.
void ShardPeers::onReceived(uint32_t ps_task, replication::StepName step, uint32_t rank) {
  const replication::OutwardCalls::Scope scope(calls_);
  requireEpoch(options_.host(), step.epoch,
               fmt::format("a gradient on {}", options_.hosts.of(ps_task).name()));
  if (!values_.initialised() || step.epoch > values_.epoch()) {
    const size_t early_max = size_t{options_.ps_tasks} * options_.workers;
    const bool sane = ps_task < options_.ps_tasks && rank < options_.workers;
    std::erase_if(early_, [&](const EarlyReport& report) {
      return report.ps_task == ps_task && report.rank == rank;
    });
    if (!sane || early_.size() >= early_max)
      throw Error(ErrorCode::kBadData,
                  fmt::format("{} reported an impossible gradient of {}",
                              options_.hosts.of(ps_task).name(), replication::workerName(rank)));
    early_.push_back({ps_task, step, rank});
    return;
  }
  if (step.epoch == values_.epoch()) values_.coordinator().onReceived(ps_task, step.step, rank);
}

void ShardPeers::beginEpoch() {
  for (const EarlyReport& report : std::exchange(early_, {})) {
    try {
      onReceived(report.ps_task, report.step, report.rank);
    } catch (const Error& error) {  // the peer's mistake doesn't keep the epoch from beginning
      log::warning("event=early_report_refused ps={} reason=\"{}\"",
                   options_.hosts.of(report.ps_task).name(), error.message());
    }
  }
}

void ShardPeers::onLeaderLinked() {
  const replication::OutwardCalls::Scope scope(calls_);
  if (values_.initialised()) values_.coordinator().onLeaderLinked();
}

void ShardPeers::onFollowerLinked(uint32_t ps_task) {
  const replication::OutwardCalls::Scope scope(calls_);
  std::erase_if(early_, [&](const EarlyReport& report) { return report.ps_task == ps_task; });
  if (values_.initialised()) values_.coordinator().onFollowerLinked(ps_task);
}

// A decision of a later epoch is an error: it takes gradients that are on this ps. A decision that
// an earlier process of this ps missed is of an epoch that will be left, or is announced again.
void ShardPeers::onDecision(replication::StepName step, const std::vector<uint32_t>& ranks) {
  const replication::OutwardCalls::Scope scope(calls_);
  if (!values_.initialised() || step.epoch < values_.epoch()) return;
  if (step.epoch > values_.epoch())
    throw Error(ErrorCode::kBadData,
                fmt::format("{} received a decision of epoch {}, but it is on epoch {}",
                            options_.host().name(), replication::epochNumber(step.epoch),
                            replication::epochNumber(values_.epoch())));
  values_.coordinator().onDecision(step.step, ranks);
}

}  // namespace dtf::shard
