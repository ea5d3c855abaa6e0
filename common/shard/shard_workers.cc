#include "common/shard/shard_workers.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/shard/declaration.h"

namespace dtf::shard {

ShardWorkers::ShardWorkers(const ShardOptions& options, const Clock& clock,
                           replication::OutwardCalls& calls, WorkerTable& table,
                           ShardValues& values, ShardWaits& waits)
    : host_(options.host()),
      calls_(calls),
      table_(table),
      values_(values),
      waits_(waits),
      barriers_(options.workers, calls, clock),
      stragglers_(options.workers, clock) {
  for (const uint32_t rank : options.finished_workers) {
    table_.membership().hasFinished(rank);
    barriers_.left(rank);
  }
}

bool ShardWorkers::join(uint32_t rank, Incarnation incarnation) {
  const replication::OutwardCalls::Scope scope(calls_);
  if (!table_.join(rank, incarnation)) return false;
  barriers_.returned(rank);
  if (values_.isDeclared()) values_.coordinator().joined(rank, incarnation);
  waits_.drop(rank, Error(ErrorCode::kUnavailable,
                          fmt::format("fenced: {} was replaced by a newer process; end this one",
                                      replication::workerName(rank))));
  return true;
}

void ShardWorkers::heartbeat(uint32_t rank, Incarnation incarnation, bool evaluates) {
  table_.heartbeat(rank, incarnation, evaluates);
}

void ShardWorkers::barrier(uint32_t rank, Incarnation incarnation, std::string_view name,
                           replication::Arrival arrival, Duration timeout,
                           replication::WaitCallback callback) {
  const replication::OutwardCalls::Scope scope(calls_);
  const std::optional<Error> error = table_.errorOf(rank, incarnation);
  if (error) return calls_.add([callback = std::move(callback), error] { callback(*error); });
  barriers_.arrive(name, rank, arrival, timeout, std::move(callback));
}

void ShardWorkers::finish(uint32_t rank, Incarnation incarnation) {
  const replication::OutwardCalls::Scope scope(calls_);
  table_.membership().check(rank, incarnation);
  if (table_.hasFinished(rank)) return;
  table_.membership().finish(rank, incarnation);
  table_.notes(rank).evaluates_since.reset();
  if (values_.isDeclared()) values_.coordinator().finished(rank);
  barriers_.left(rank);
}

void ShardWorkers::requestStop(uint32_t rank, Incarnation incarnation) {
  const replication::OutwardCalls::Scope scope(calls_);
  table_.membership().check(rank, incarnation);
  values_.requestStop();
}

void ShardWorkers::checkMayEndJob(uint32_t rank, Incarnation incarnation) {
  table_.membership().check(rank, incarnation);
  const bool finished = table_.hasFinished(rank);
  const WorkerNotes& notes = table_.notes(rank);
  const bool decides = rank == kChief.index && notes.has_declared;
  if (!finished && (decides || !table_.anybodyTrains() || notes.has_trained)) return;
  throw Error(
      ErrorCode::kPermission,
      fmt::format("{} {}, so its failure doesn't end the job", replication::workerName(rank),
                  finished ? "has finished" : "joined a job that trains without it"));
}

void ShardWorkers::noteTimes(const replication::Contribution& push) {
  stragglers_.note(push, values_.declaration().value());
}

// ---- losses

void ShardWorkers::markLost(uint32_t rank) {
  const replication::OutwardCalls::Scope scope(calls_);
  if (rank >= table_.size() || !table_.isPresent(rank)) return;
  table_.membership().markLost(rank);
  lose({rank, replication::workerName(rank) + " was lost (its process ended)"});
}

void ShardWorkers::giveUpAwaited() {
  const replication::OutwardCalls::Scope scope(calls_);
  for (uint32_t rank = 0; rank < table_.size(); ++rank) {
    if (!table_.isIn(rank, replication::MemberState::kAwaited)) continue;
    table_.membership().giveUp(rank);
    lose({rank, fmt::format("{} was lost (it has not joined {} since that process was started)",
                            replication::workerName(rank), host_.name())});
  }
}

void ShardWorkers::leave(uint32_t rank, Incarnation incarnation, const std::string& reason) {
  const replication::OutwardCalls::Scope scope(calls_);
  DTF_CHECK(!reason.empty());
  table_.membership().check(rank, incarnation);
  if (table_.hasFinished(rank)) return;  // no worker waits for it
  table_.membership().markLost(rank);
  lose({rank, fmt::format("{} was lost (it has left: {})", replication::workerName(rank), reason)});
}

void ShardWorkers::lose(const replication::Membership::Loss& loss) {
  waits_.drop(loss.rank, Error(ErrorCode::kUnavailable, "fenced: " + loss.why));
  table_.notes(loss.rank).evaluates_since.reset();
  if (values_.isDeclared()) values_.coordinator().lost(loss.rank, loss.why);
  barriers_.left(loss.rank);
}

void ShardWorkers::tick() {
  const replication::OutwardCalls::Scope scope(calls_);
  for (const replication::Membership::Loss& loss : table_.membership().expire()) lose(loss);
  barriers_.tick();
}

// ---- the job's model

void ShardWorkers::declare(uint32_t rank, Incarnation incarnation,
                           const arena::ModelDeclaration& declaration) {
  const replication::OutwardCalls::Scope scope(calls_);
  table_.membership().check(rank, incarnation);
  if (values_.isDeclared() && !declareTheSame(*values_.declaration(), declaration)) {
    const bool running = values_.initialised();
    if (rank != kChief.index || declarer_ == kChief.index || running)
      throw refusal(rank, declaration, *values_.declaration());
    values_.validate(declaration);
    takeChiefsDeclaration(declaration);
  } else if (!values_.isDeclared()) {
    values_.validate(declaration);
    values_.adopt(declaration);
    declarer_ = rank;
  }
  if (rank == kChief.index) declarer_ = rank;
  table_.notes(rank).has_declared = true;
}

std::optional<Error> ShardWorkers::notYetDeclared(uint32_t rank, Incarnation incarnation) {
  const std::optional<Error> error = table_.errorOf(rank, incarnation);
  if (error && error->code() != ErrorCode::kPermission) throw Error(*error);
  if (error) return error;  // it has not joined
  if (!table_.notes(rank).has_declared)
    return Error(ErrorCode::kPermission,
                 fmt::format("{} has not declared the model to {}; a worker declares it before "
                             "it asks for parameters",
                             replication::workerName(rank), host_.name()));
  DTF_CHECK(values_.isDeclared());
  return std::nullopt;
}

void ShardWorkers::checkDeclared(uint32_t rank, Incarnation incarnation) {
  if (const std::optional<Error> error = notYetDeclared(rank, incarnation)) throw Error(*error);
}

// Makes the chief's declaration the job's. A worker that declared another before has the wrong
// file.
void ShardWorkers::takeChiefsDeclaration(const arena::ModelDeclaration& declaration) {
  const arena::ModelDeclaration before = values_.declaration().value();
  std::vector<uint32_t> otherwise;
  for (uint32_t rank = 0; rank < table_.size(); ++rank)
    if (table_.notes(rank).has_declared) otherwise.push_back(rank);
  forgetDeclared();
  values_.adopt(declaration);
  declarer_ = kChief.index;
  for (const uint32_t rank : otherwise) {
    const Error error = refusal(rank, before, declaration);
    table_.notes(rank).refused = error;
    waits_.dropInitialised(rank, error);
  }
}

void ShardWorkers::forgetDeclared() {
  for (uint32_t rank = 0; rank < table_.size(); ++rank) table_.notes(rank).has_declared = false;
}

Error ShardWorkers::refusal(uint32_t rank, const arena::ModelDeclaration& theirs,
                            const arena::ModelDeclaration& job) const {
  const bool chiefs = declarer_ == kChief.index;
  const std::string declarer = replication::workerName(declarer_) + "'s";
  return {ErrorCode::kBadConfig,
          fmt::format("{}'s TRAIN.yaml differs from {}: {}; start all tasks with the same files",
                      replication::workerName(rank),
                      chiefs && rank != kChief.index ? "the job's, which is " + kChief.name() + "'s"
                      : chiefs                       ? "the running job's"
                                                     : declarer + ", which came first",
                      declarationDifference(job, theirs, chiefs ? "the job's" : declarer))};
}

}  // namespace dtf::shard
