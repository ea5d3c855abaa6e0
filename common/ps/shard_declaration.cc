// Shard, second part: what the workers declare, and the store and coordinator that are made of it.

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/ps/declaration.h"
#include "common/ps/replication_rules.h"
#include "common/ps/shard.h"

namespace dtf::ps {

void Shard::declare(uint32_t rank, Incarnation incarnation, const ModelDeclaration& declaration) {
  const OutwardCalls::Scope scope(calls_);
  membership_.check(rank, incarnation);
  if (declaration_ && *declaration_ != declaration) {
    const bool running = store_->initialised();
    if (rank != kChief.index || declarer_ == kChief.index || running)
      throw refusal(rank, declaration, *declaration_);
    validate(declaration);
    takeChiefsWord(declaration);
  } else if (!declaration_) {
    validate(declaration);
    adopt(declaration);
    declarer_ = rank;
  }
  if (rank == kChief.index) declarer_ = rank;
  declared_alike_.insert(rank);
}

std::optional<Error> Shard::notYetDeclared(uint32_t rank, Incarnation incarnation) {
  const std::optional<Error> error = membershipError(rank, incarnation);
  if (error && error->code() != ErrorCode::kPermission) throw Error(*error);
  if (error) return error;  // it has not joined
  if (!declared_alike_.contains(rank))
    return Error(ErrorCode::kPermission,
                 fmt::format("{} has not declared the model to ps/{}; a worker declares it before "
                             "it asks for parameters",
                             workerName(rank), options_.ps_task));
  DTF_CHECK(declared());
  return std::nullopt;
}

void Shard::checkDeclared(uint32_t rank, Incarnation incarnation) {
  if (const std::optional<Error> error = notYetDeclared(rank, incarnation)) throw Error(*error);
}

// Whoever declared before the chief, and not as the chief does, has the wrong file.
void Shard::takeChiefsWord(const ModelDeclaration& declaration) {
  const ModelDeclaration before = *declaration_;
  const std::set<uint32_t> otherwise = std::exchange(declared_alike_, {});
  adopt(declaration);
  declarer_ = kChief.index;
  for (const uint32_t rank : otherwise) {
    const Error error = refusal(rank, before, declaration);
    refused_.emplace(rank, error);
    dropInitWaiter(rank, error);
  }
}

Error Shard::refusal(uint32_t rank, const ModelDeclaration& theirs,
                     const ModelDeclaration& job) const {
  const bool chiefs_word = declarer_ == kChief.index;
  const std::string whose = chiefs_word ? "the job's" : workerName(declarer_) + "'s";
  return {ErrorCode::kBadConfig,
          fmt::format("{}'s TRAIN.yaml differs from {}: {}; start all tasks with the same files",
                      workerName(rank),
                      chiefs_word && rank != kChief.index
                          ? "the job's, which is " + kChief.name() + "'s"
                      : chiefs_word ? "the running job's"
                                    : workerName(declarer_) + "'s, which came first",
                      declarationDifference(job, theirs, whose))};
}

void Shard::validate(const ModelDeclaration& declaration) const {
  validateDeclaration(declaration, options_.ps_tasks, options_.workers);
  DTF_CHECK(!hasBackupWorkers(declaration.replication) || options_.ps_tasks == 1 ||
            peers_ != nullptr);
  if (options_.memory_bytes > 0 && arenaBytes(declaration) > options_.memory_bytes)
    throw noMemory(declaration);
}

Duration Shard::stepPatience() const {
  const Duration others = options_.ps_tasks > 1 ? options_.rejoin_timeout : Duration{0};
  DTF_CHECK(options_.step_timeout >= Duration{0} && others >= Duration{0});
  return others > Duration::max() - options_.step_timeout ? Duration::max()
                                                          : options_.step_timeout + others;
}

// All or nothing: a shard that could not be made is not declared.
void Shard::adopt(const ModelDeclaration& declaration) {
  DTF_CHECK(epoch_ == 0);  // whoever goes back has left it
  // Before the next is made: a host need not have room for both.
  coordinator_ = nullptr;
  replicator_ = nullptr;
  store_ = nullptr;
  declaration_.reset();
  std::unique_ptr<ParameterStore> store = makeStore(declaration);
  if (replica_ != nullptr) {
    replicator_ = std::make_unique<Replicator>(*store, *replica_, replica_tickets_);
    if (backups_met_ > 0) replicator_->onBackup();
    replica_->open(store->elements());
  }
  coordinator_ = makeCoordinator({.ps_task = options_.ps_task,
                                  .ps_tasks = options_.ps_tasks,
                                  .workers = options_.workers,
                                  .step_timeout = stepPatience(),
                                  .rejoin_timeout = options_.rejoin_timeout,
                                  .declaration = declaration,
                                  .epoch = epoch_,
                                  .store = *store,
                                  .runner = runner_,
                                  .calls = calls_,
                                  .clock = clock_,
                                  .peers = peers_,
                                  .replicator = replicator_.get()});
  store_ = std::move(store);
  declaration_ = declaration;
  recallMembers();
}

// A new coordinator has not heard who came and went before it: in the order in which they did, for
// a worker that came after a loss knows of it.
void Shard::recallMembers() {
  std::vector<uint32_t> ranks;
  for (uint32_t rank = 0; rank < options_.workers; ++rank)
    if (membership_.member(rank).state != MemberState::kAwaited) ranks.push_back(rank);
  std::stable_sort(ranks.begin(), ranks.end(), [this](uint32_t a, uint32_t b) {
    return membership_.member(a).since < membership_.member(b).since;
  });
  for (const uint32_t rank : ranks) {
    switch (membership_.member(rank).state) {
      case MemberState::kAwaited:
        break;
      case MemberState::kJoined:
        coordinator_->joined(rank, membership_.member(rank).incarnation);
        break;
      case MemberState::kFinished:
        coordinator_->finished(rank);
        break;
      case MemberState::kLost:
        coordinator_->lost(rank, workerName(rank) + " was lost");
        break;
    }
  }
}

void Shard::keepOn(std::shared_ptr<DeviceArrays> device) {
  DTF_CHECK(device != nullptr && !declaration_ && replica_ == nullptr);
  device_ = std::move(device);
}

std::unique_ptr<ParameterStore> Shard::makeStore(const ModelDeclaration& declaration) const {
  try {
    return ps::makeStore(declaration, options_.ps_task, device_);
  } catch (const std::bad_alloc&) {
    throw noMemory(declaration);
  }
}

// The parameters and the optimizer's slots, without what a step needs beside them.
uint64_t Shard::arenaBytes(const ModelDeclaration& declaration) const {
  const uint64_t arenas = 1 + slotCount(declaration.optimizer);
  return arenas * declaration.layout.shards[options_.ps_task].elements * sizeof(float);
}

Error Shard::noMemory(const ModelDeclaration& declaration) const {
  return {ErrorCode::kBadConfig,
          fmt::format("ps/{} has no memory for its part of the model: {:.1f} GB with the "
                      "optimizer's slots; use more ps tasks, or split large variables with "
                      "placement.partition",
                      options_.ps_task, static_cast<double>(arenaBytes(declaration)) * 1e-9)};
}

}  // namespace dtf::ps
