#include "common/shard/shard_cuts.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "common/base/error.h"

namespace dtf::shard {

void requireChief(WorkerTable& workers, const ShardValues& values, Incarnation chief,
                  std::string_view what) {
  workers.membership().check(kChief.index, chief);
  if (!values.isDeclared()) throw values.notDeclared(what);
}

ShardCuts::ShardCuts(const ShardOptions& options, replication::OutwardCalls& calls,
                     WorkerTable& workers, ShardValues& values)
    : host_(options.host()), calls_(calls), workers_(workers), values_(values) {}

CutPosition ShardCuts::position(Incarnation chief, bool hold) {
  std::optional<Error> error = workers_.errorOf(kChief.index, chief);
  if (!error) error = values_.notReadyFor("a query for a checkpoint");
  if (error) throw Error(*error);
  return values_.coordinator().position(hold);
}

void ShardCuts::cutAt(Incarnation chief, uint64_t epoch, CutPosition target,
                      replication::CutCallback callback) {
  const replication::OutwardCalls::Scope scope(calls_);
  std::optional<Error> error = workers_.errorOf(kChief.index, chief);
  if (!error) error = values_.notReadyFor("a request for a checkpoint");
  if (!error && epoch != values_.epoch()) error = replication::wentBackDuringCut(host_);
  if (error) return calls_.add([callback = std::move(callback), error] { callback(*error); });
  values_.coordinator().cutAt(std::move(target), std::move(callback));
}

void ShardCuts::releaseHold(Incarnation chief) {
  requireChief(workers_, values_, chief, "the end of a checkpoint");
  values_.coordinator().releaseHold();
}

CapturedShard ShardCuts::captured(Incarnation chief, const CutPosition& position) {
  requireChief(workers_, values_, chief, "a request to save");
  const std::shared_ptr<const replication::Capture>& latest = values_.coordinator().cuts().latest();
  if (latest == nullptr || latest->position != position) {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("{} can't save {}: {}; a later checkpoint is tried", host_.name(),
                            replication::cutText(position),
                            latest == nullptr
                                ? "it has captured nothing"
                                : "it has captured " + replication::cutText(latest->position)));
  }
  return {latest, values_.declaration().value()};
}

void ShardCuts::releaseCapture() {
  if (values_.isDeclared()) values_.coordinator().cuts().release();
}

}  // namespace dtf::shard
