#include "common/shard/shard_replica.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/replication/epoch.h"

namespace dtf::shard {

namespace {

// A process older than that many restarts is refused, too: it isn't the newest one.
constexpr size_t kReplacedMax = 16;

}  // namespace

void ShardReplica::meet(Incarnation primary) {
  DTF_CHECK(primary.value != 0);
  if (primary == primary_) return;
  const bool is_replaced =
      std::find(replaced_.begin(), replaced_.end(), primary) != replaced_.end();
  if (is_replaced || primary.isCountedBefore(primary_))
    throw Error(
        ErrorCode::kUnavailable,
        fmt::format("fenced: {} was replaced by a newer process; end this one", host_.name()));
  if (primary_.value != 0) replaced_.push_back(primary_);
  if (replaced_.size() > kReplacedMax) replaced_.pop_front();
  primary_ = primary;
  // The replaced process no longer waits for these.
  received_ = nullptr;
  fetched_ = nullptr;
}

void ShardReplica::check(Incarnation primary) const {
  if (primary == primary_) return;
  throw Error(
      ErrorCode::kUnavailable,
      fmt::format("fenced: {} was replaced by a newer process; end this one", host_.name()));
}

void ShardReplica::validate(const arena::ModelDeclaration& declaration,
                            const replication::ReplicaSeed& seed) const {
  DTF_CHECK(ps_task_ < declaration.layout.shards.size());
  const uint64_t elements = declaration.layout.shards[ps_task_].elements;
  const size_t own = 1 + optimizer::slotCount(declaration.optimizer);
  const bool has_before = seed.arenas.size() == own + 1 && seed.state.step > 0;
  bool fits = (seed.arenas.size() == own || has_before) && seed.state.epoch > 0;
  for (const std::span<const float>& arena : seed.arenas) fits &= arena.size() == elements;
  fits &= seed.state.memory.workers.size() == workers_;
  if (!fits)
    throw Error(ErrorCode::kBadData,
                fmt::format("{} sent a replica that doesn't fit the declared model", host_.name()));
}

void ShardReplica::seed(Incarnation primary, const arena::ModelDeclaration& declaration,
                        const replication::ReplicaSeed& seed) {
  check(primary);
  validate(declaration, seed);
  // Freed before the next is made: a host need not have room for both.
  queue_.clear();
  received_ = nullptr;
  updater_ = nullptr;
  store_ = nullptr;
  std::unique_ptr<optimizer::ParameterStore> store = optimizer::makeStore(declaration, ps_task_);
  const size_t own = 1 + store->slotCount();
  std::optional<std::span<const float>> before;
  if (seed.arenas.size() > own) before = seed.arenas[own];
  store->restore(seed.arenas[0], std::span(seed.arenas).subspan(1, own - 1), seed.state.clock,
                 seed.state.step, before, {seed.ownerOf(0), before ? seed.ownerOf(own) : nullptr});
  updater_ = std::make_unique<replication::Updater>(*store, runner_, calls_);
  store_ = std::move(store);
  state_ = seed.state;
}

void ShardReplica::update(Incarnation primary, const replication::ReplicaUpdate& update,
                          std::function<void()> received) {
  const replication::OutwardCalls::Scope scope(calls_);
  check(primary);
  const bool is_repeated = store_ && update.epoch == state_.epoch && update.version == state_.step;
  const bool follows = store_ && update.epoch == state_.epoch &&
                       update.version == state_.step + 1 &&
                       !store_->gradientLayout().fault(update.gradient);
  if (!is_repeated && !follows)
    throw Error(
        ErrorCode::kBadData,
        fmt::format(
            "{} sent update {} of epoch {} to its replica, which is at update {} of epoch {}",
            host_.name(), update.version, replication::epochNumber(update.epoch), version(),
            replication::epochNumber(epoch())));
  if (is_repeated && received_) {
    received_ = std::move(received);
    return;
  }
  if (is_repeated) return calls_.add(std::move(received));
  for (const replication::UpdateNote::Push& push : update.note.pushes)
    if (push.rank >= workers_)
      throw Error(
          ErrorCode::kBadData,
          fmt::format("{} sent its replica an update of worker/{}, which the job doesn't have",
                      host_.name(), push.rank));
  state_.step = update.version;
  state_.memory.applied(update.note);
  queue_.push_back(update);
  if (queue_.size() > kQueuedMax)
    received_ = std::move(received);
  else
    calls_.add(std::move(received));
  applyNext();
}

void ShardReplica::applyNext() {
  if (updater_->busy()) return;
  if (queue_.empty()) return giveBack();
  std::vector<arena::Gradient> gradients{std::move(queue_.front().gradient)};
  queue_.pop_front();
  if (queue_.size() <= kQueuedMax && received_) calls_.add(std::exchange(received_, nullptr));
  updater_->start(std::move(gradients), {}, [this] { applyNext(); });
}

void ShardReplica::fetch(Incarnation primary,
                         std::function<void(replication::ReplicaSeed)> fetched) {
  const replication::OutwardCalls::Scope scope(calls_);
  check(primary);
  DTF_CHECK(fetched != nullptr);
  if (!store_)
    throw Error(ErrorCode::kUnavailable,
                fmt::format("no replica of {} is kept here", host_.name()));
  fetched_ = std::move(fetched);
  applyNext();
}

void ShardReplica::giveBack() {
  if (!fetched_) return;
  DTF_CHECK(!updater_->busy() && queue_.empty() && store_->version() == state_.step);
  optimizer::ParameterStore::Image image = store_->newest();
  state_.clock = image.clock;
  calls_.add([fetched = std::exchange(fetched_, nullptr),
              seed = replication::ReplicaSeed{state_, std::move(image.arenas),
                                              std::move(image.owner)}] { fetched(seed); });
}

}  // namespace dtf::shard
