#include "common/shard/shard_backup.h"

#include <fmt/format.h>

#include <utility>

#include "common/base/check.h"
#include "common/base/ids.h"
#include "common/replication/coordinator.h"

namespace dtf::shard {

ShardBackup::ShardBackup(const ShardOptions& options, replication::ReplicaLink* link,
                         replication::OutwardCalls& calls, const Clock& clock)
    : host_(options.host()),
      keeper_(options.hosts.of(replication::backupOf(options.ps_task, options.ps_tasks))),
      link_(link),
      calls_(calls),
      waiting_(calls, clock) {}

void ShardBackup::onBackup() {
  const replication::OutwardCalls::Scope scope(calls_);
  DTF_CHECK(isKept());
  ++met_;
  if (replicator_) replicator_->onBackup();
}

void ShardBackup::onHeard(uint64_t ticket) {
  const replication::OutwardCalls::Scope scope(calls_);
  if (!replicator_) return;
  replicator_->onHeard(ticket);
  if (replicator_->isWhole()) waiting_.answerAll(replication::Arrived{});
}

void ShardBackup::open(const optimizer::ParameterStore& store) {
  DTF_CHECK(replicator_ == nullptr);
  if (!isKept()) return;
  replicator_ = std::make_unique<replication::Replicator>(store, *link_, tickets_);
  if (met_ > 0) replicator_->onBackup();
  link_->open(store.elements());
}

void ShardBackup::close() {
  replicator_ = nullptr;
}

bool ShardBackup::isAwaited() const {
  if (!replicator_) return false;
  return !replicator_->isWhole() || (link_->isAway() && replicator_->awaitsAnswer());
}

std::string ShardBackup::awaitedText() const {
  DTF_CHECK(isAwaited());
  if (link_->isAway()) return fmt::format("the replica on {}, which is lost", keeper_.name());
  return fmt::format("{} to take the replica of {}", keeper_.name(), host_.name());
}

// Sets no deadline: the caller does.
void ShardBackup::awaitWhole(replication::WaitCallback callback) {
  DTF_CHECK(replicator_ != nullptr);
  waiting_.add(kChief.index, Duration::max(), std::move(callback),
               replication::gaveWay(kChief.index, host_));
  if (replicator_->isWhole()) waiting_.answerAll(replication::Arrived{});
}

Error ShardBackup::notKept() const {
  return {ErrorCode::kUnavailable, fmt::format("no replica is kept of {}", host_.name())};
}

}  // namespace dtf::shard
