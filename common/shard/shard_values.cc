#include "common/shard/shard_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "common/base/check.h"
#include "common/replication/epoch.h"
#include "common/replication/replication_rules.h"
#include "common/shard/declaration.h"

namespace dtf::shard {

ShardValues::ShardValues(const ShardOptions& options, const Clock& clock,
                         optimizer::UpdateRunner& runner, replication::OutwardCalls& calls,
                         replication::SyncPeers* peers, ShardBackup& backup,
                         const WorkerTable& workers)
    : options_(options),
      clock_(clock),
      runner_(runner),
      calls_(calls),
      peers_(peers),
      backup_(backup),
      workers_(workers) {}

void ShardValues::keepOn(std::shared_ptr<optimizer::DeviceArrays> device) {
  DTF_CHECK(device != nullptr && !declaration_ && !backup_.isKept());
  device_ = std::move(device);
}

void ShardValues::validate(const arena::ModelDeclaration& declaration) const {
  validateDeclaration(declaration, options_.ps_tasks, options_.workers);
  DTF_CHECK(!replication::hasBackupWorkers(declaration.replication) || options_.ps_tasks == 1 ||
            peers_ != nullptr);
  if (options_.memory_bytes > 0 && arenaBytes(declaration) > options_.memory_bytes)
    throw noMemory(declaration);
}

Duration ShardValues::stepPatience() const {
  const Duration others = options_.ps_tasks > 1 ? options_.rejoin_timeout : Duration{0};
  DTF_CHECK(options_.step_timeout >= Duration{0} && others >= Duration{0});
  return others > Duration::max() - options_.step_timeout ? Duration::max()
                                                          : options_.step_timeout + others;
}

void ShardValues::adopt(const arena::ModelDeclaration& declaration) {
  DTF_CHECK(epoch() == 0);  // a shard that goes back has left its epoch
  // Freed before the next is made: a host need not have room for both.
  coordinator_ = nullptr;
  backup_.close();
  store_ = nullptr;
  declaration_.reset();
  std::unique_ptr<optimizer::ParameterStore> store = makeStore(declaration);
  backup_.open(*store);
  coordinator_ = replication::makeCoordinator({.ps_task = options_.ps_task,
                                               .ps_tasks = options_.ps_tasks,
                                               .hosts = options_.hosts,
                                               .workers = options_.workers,
                                               .step_timeout = stepPatience(),
                                               .rejoin_timeout = options_.rejoin_timeout,
                                               .declaration = declaration,
                                               .epoch = held_.epoch,
                                               .store = *store,
                                               .runner = runner_,
                                               .calls = calls_,
                                               .clock = clock_,
                                               .peers = peers_,
                                               .replicator = backup_.replicator()});
  store_ = std::move(store);
  declaration_ = declaration;
  recallMembers();
}

// Repeats joins and losses to a new coordinator, in their order: a loss before a worker joined
// doesn't fail its calls.
void ShardValues::recallMembers() {
  const replication::Membership& members = workers_.membership();
  std::vector<uint32_t> ranks;
  for (uint32_t rank = 0; rank < options_.workers; ++rank)
    if (members.member(rank).state != replication::MemberState::kAwaited) ranks.push_back(rank);
  std::stable_sort(ranks.begin(), ranks.end(), [&](uint32_t a, uint32_t b) {
    return members.member(a).since < members.member(b).since;
  });
  for (const uint32_t rank : ranks) {
    switch (members.member(rank).state) {
      case replication::MemberState::kAwaited:
        break;
      case replication::MemberState::kJoined:
        coordinator_->joined(rank, members.member(rank).incarnation);
        break;
      case replication::MemberState::kFinished:
        coordinator_->finished(rank);
        break;
      case replication::MemberState::kLost:
        coordinator_->lost(rank, replication::workerName(rank) + " was lost");
        break;
    }
  }
}

void ShardValues::begin(const Beginning& beginning) {
  DTF_CHECK(beginning.epoch > 0 && epoch() == 0 && initialised());
  held_ = beginning;
  if (replication::Replicator* replicator = backup_.replicator())
    replicator->begin({held(), {}, coordinator_->memory()}, beginning.has_replica);
  if (stop_requested_) coordinator_->requestStop();
}

std::vector<replication::Coordinator::Stranded> ShardValues::leave() {
  DTF_CHECK(initialised() && epoch() > 0);
  std::vector<replication::Coordinator::Stranded> stranded = coordinator_->takeWaiting();
  held_ = {};
  return stranded;
}

uint64_t ShardValues::elements() const {
  return declaration_ ? declaration_->layout.shards[options_.ps_task].elements : 0;
}

checkpoint::HeldValues ShardValues::held() const {
  checkpoint::HeldValues held = held_;
  if (initialised()) held.step = store_->version();
  return held;
}

optimizer::ParameterStore& ShardValues::store() const {
  DTF_CHECK(store_ != nullptr);
  return *store_;
}

replication::Coordinator& ShardValues::coordinator() const {
  DTF_CHECK(coordinator_ != nullptr);
  return *coordinator_;
}

void ShardValues::requestStop() {
  stop_requested_ = true;
  if (initialised()) coordinator_->requestStop();
}

std::optional<Error> ShardValues::notReadyFor(std::string_view what) const {
  if (!store_) return notDeclared(what);
  if (initialised()) return std::nullopt;
  return Error(ErrorCode::kUnavailable,
               fmt::format("{} received {} before the chief, {}, initialised it",
                           options_.host().name(), what, kChief.name()));
}

Error ShardValues::notDeclared(std::string_view what) const {
  return Error(ErrorCode::kUnavailable,
               fmt::format("{} received {} before the model was declared to it; it was "
                           "restarted, or the worker skipped a call",
                           options_.host().name(), what));
}

std::unique_ptr<optimizer::ParameterStore> ShardValues::makeStore(
    const arena::ModelDeclaration& declaration) const {
  try {
    return optimizer::makeStore(declaration, options_.ps_task, device_);
  } catch (const std::bad_alloc&) {
    throw noMemory(declaration);
  }
}

// Returns the bytes of the parameters and the optimizer's slots; a step needs more than these.
uint64_t ShardValues::arenaBytes(const arena::ModelDeclaration& declaration) const {
  const uint64_t arenas = 1 + optimizer::slotCount(declaration.optimizer);
  return arenas * declaration.layout.shards[options_.ps_task].elements * sizeof(float);
}

Error ShardValues::noMemory(const arena::ModelDeclaration& declaration) const {
  return {ErrorCode::kBadConfig,
          fmt::format("{} has no memory for its part of the model: {:.1f} GB with the "
                      "optimizer's slots; use more {}, or split large variables with "
                      "placement.partition",
                      options_.host().name(), static_cast<double>(arenaBytes(declaration)) * 1e-9,
                      options_.hosts.noun())};
}

std::string ShardValues::emptyText() const {
  if (!declaration_) return "; no model is declared";
  constexpr size_t kNamedMax = 5;
  const std::vector<arena::Slice>& slices = declaration_->layout.shards[options_.ps_task].slices;
  if (slices.empty()) return "";
  std::string text;
  for (size_t i = 0; i < std::min(slices.size(), kNamedMax); ++i)
    text += (i == 0 ? "; without values: " : ", ") +
            declaration_->layout.variables[slices[i].variable].name;
  if (slices.size() > kNamedMax) text += fmt::format(" and {} more", slices.size() - kNamedMax);
  return text;
}

std::optional<Error> badEpoch(TaskId host, uint64_t epoch, std::string_view whose) {
  if (replication::validEpoch(epoch)) return std::nullopt;
  return Error(ErrorCode::kBadData, fmt::format("{} received the invalid epoch {:#x} for {}",
                                                host.name(), epoch, whose));
}

void requireEpoch(TaskId host, uint64_t epoch, std::string_view whose) {
  if (const std::optional<Error> error = badEpoch(host, epoch, whose)) throw Error(*error);
}

}  // namespace dtf::shard
