#include "common/shard/shard_readers.h"

#include <fmt/format.h>

#include <utility>

#include "common/base/check.h"

namespace dtf::shard {

ShardReaders::ShardReaders(const ShardOptions& options, const Clock& clock,
                           replication::OutwardCalls& calls, ShardValues& values)
    : host_(options.host()), calls_(calls), values_(values), waiting_(calls, clock) {}

uint32_t ShardReaders::open() {
  if (readers_.size() >= kReadersMax)
    throw Error(ErrorCode::kUnavailable,
                fmt::format("{} already has {} readers beside its training; close one of them",
                            host_.name(), kReadersMax));
  readers_.insert(++opened_);
  return opened_;
}

void ShardReaders::close(uint32_t reader) {
  waiting_.take(reader);
  readers_.erase(reader);
}

void ShardReaders::read(uint32_t reader, std::optional<uint64_t> step, ReadCallback callback) {
  const replication::OutwardCalls::Scope scope(calls_);
  DTF_CHECK(readers_.contains(reader));
  if (const std::optional<Error> error = values_.notReadyFor("a read beside training"))
    return calls_.add([callback = std::move(callback), error] { callback(*error); });
  waiting_.add(reader, kReadWaitMax, std::move(callback),
               Error(ErrorCode::kUnavailable, "a later read of this reader has replaced it"), step);
  answerDue();
}

std::shared_ptr<const arena::ParameterVersion> ShardReaders::newest() const {
  DTF_CHECK(values_.initialised());
  return values_.store().readable();
}

// Parameters on a device change in place, so they are read between two updates.
void ShardReaders::answerDue() {
  if (!values_.initialised()) return;
  optimizer::ParameterStore& store = values_.store();
  const uint64_t version = store.version();
  const bool is_readable = !store.isOnDevice() || !store.updating();
  for (Waiting::Call& call : waiting_.takeAll()) {
    const std::optional<uint64_t> step = call.detail;
    if (step > version || !is_readable) {
      waiting_.putBack(std::move(call));
      continue;
    }
    calls_.add([callback = std::move(call.callback), answer = answerOf(!step || step == version)] {
      callback(answer);
    });
  }
  if (waiting_.empty() || awaits_update_) return;
  awaits_update_ = true;
  values_.coordinator().callAfter(replication::UpdateEnd::kNext, [this] {
    awaits_update_ = false;
    answerDue();
  });
}

// The error of a device is the reader's: the update that has just ended is committed.
ReadAnswer ShardReaders::answerOf(bool with_parameters) const {
  ReadReply reply = passed();
  try {
    if (with_parameters) reply.parameters = newest();
  } catch (const Error& error) {
    return error;
  }
  return reply;
}

ReadReply ShardReaders::passed() const {
  return {.step = values_.store().version(), .epoch = values_.epoch(), .parameters = nullptr};
}

// The coordinator before is gone, and with it its call after an update.
void ShardReaders::beginEpoch() {
  awaits_update_ = false;
  waiting_.answerAll(passed());
}

void ShardReaders::tick() {
  if (values_.initialised())
    waiting_.expire([this](const Waiting::Call&) { return ReadAnswer(passed()); });
  else
    waiting_.answerAll(Error(ErrorCode::kUnavailable,
                             host_.name() + " has lost its values and waits for the chief"));
}

}  // namespace dtf::shard
