#include "common/wire/checkpoint/shard_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/checksum.h"
#include "common/net/error_bridge.h"
#include "common/net/timer.h"
#include "common/wire/checkpoint_codec.h"
#include "common/wire/ps/every_ps.h"

namespace dtf::wire {

namespace {

// One piece is on the wire while the one before it is written to disk, or taken by its ps.
constexpr size_t kPiecesUnderWay = 2;

std::string pieceText(const char* doing, uint64_t offset) {
  return fmt::format("{} its shard from byte {} on", doing, offset);
}

}  // namespace

std::string checkedPiece(capnp::Data::Reader data, uint64_t checksum, uint64_t due,
                         const std::string& ps) {
  std::string bytes(reinterpret_cast<const char*>(data.begin()), data.size());
  if (bytes.size() != due)
    net::throwAsKj(
        Error(ErrorCode::kBadData,
              fmt::format("{} sent {} bytes of its shard instead of {}", ps, bytes.size(), due)));
  if (checksumOf(bytes) != checksum)
    net::throwAsKj(Error(ErrorCode::kUnavailable,
                         fmt::format("{} bytes of {}'s shard were damaged on the way: their "
                                     "checksum is {}, but {} reports {}",
                                     due, ps, hexOf(checksumOf(bytes)), ps, hexOf(checksum))));
  return bytes;
}

ShardCalls::ShardCalls(CheckpointCalls& checkpoint) : checkpoint_(checkpoint) {
  checkpoint_.onInterrupted([this](const Error& why) { end(why); });
  checkpoint_.control().watchBreaks([this](uint32_t ps_task, const Error& why) {
    end(Error(ErrorCode::kUnavailable,
              fmt::format("lost {} while it sent or received its shard of the checkpoint: {}",
                          checkpoint_.control().host(ps_task).name(), why.message())));
  });
}

ShardCalls::~ShardCalls() {
  checkpoint_.onInterrupted(nullptr);
  checkpoint_.control().watchBreaks(nullptr);
}

// ---- a transfer as a whole

void ShardCalls::begin() {
  const kj::TimePoint now = checkpoint_.control().loop().timer().now();
  whole_ = std::make_unique<Whole>();
  whole_->deadline = now + net::toKj(fromSeconds(checkpoint_.diskSeconds()));
}

void ShardCalls::end(const Error& why) {
  if (whole_ == nullptr || whole_->why) return;
  whole_->why = why;
  whole_->aborted.fail(why);
}

// Checks for the end of the transfer first: a piece that has arrived would otherwise come before
// it.
template <class T>
kj::Promise<T> ShardCalls::guard(kj::Promise<T> promise) {
  if (whole_ == nullptr) begin();
  kj::Timer& timer = checkpoint_.control().loop().timer();
  if (timer.now() >= whole_->deadline)
    end(Error(ErrorCode::kDeadline,
              fmt::format("waited {:g} s for the shards of a checkpoint to be sent "
                          "(timeouts.finish_seconds)",
                          checkpoint_.diskSeconds())));
  if (whole_->why) return net::toKj(*whole_->why);
  auto late =
      timer.atTime(whole_->deadline).then([this] { return guard(kj::Promise<T>(kj::NEVER_DONE)); });
  return whole_->aborted.guard(promise.exclusiveJoin(kj::mv(late)));
}

// ---- save

kj::Promise<std::vector<checkpoint::SavedShard>> ShardCalls::stage(const CutPosition& position) {
  ahead_.reset();
  begin();
  // After an interruption of this cut the ps with the capture may be gone.
  if (checkpoint_.interruption()) end(*checkpoint_.interruption());
  return guard(fromEveryPs<checkpoint::SavedShard>(
      checkpoint_.control(), "make its shard of the checkpoint ready", checkpoint_.diskSeconds(),
      [&](uint32_t i) {
        auto request = checkpoint_.session(i).stageRequest();
        encodePosition(position, request.initPosition(static_cast<uint32_t>(position.size())));
        return request.send().then([](auto&& response) {
          return net::bridgeErrors([&] { return decodeSaved(response.getSaved()); });
        });
      }));
}

kj::Promise<std::string> ShardCalls::askFor(uint32_t ps_task, uint64_t offset, uint64_t bytes) {
  auto request = checkpoint_.session(ps_task).fetchRequest();
  request.setOffset(offset);
  request.setBytes(static_cast<uint32_t>(bytes));
  const std::string ps = checkpoint_.control().host(ps_task).name();
  return fromPs(checkpoint_.control(), ps_task, pieceText("send", offset), kPieceSeconds,
                request.send().then([bytes, ps](auto&& response) {
                  return checkedPiece(response.getData(), response.getChecksum(), bytes, ps);
                }));
}

kj::Promise<std::string> ShardCalls::fetch(uint32_t ps_task, uint64_t offset, uint64_t file_bytes) {
  DTF_CHECK(offset < file_bytes);
  const auto due = [&](uint64_t from) {
    return std::min(checkpoint::kPieceBytesMax, file_bytes - from);
  };
  std::optional<Fetched> asked = std::exchange(ahead_, std::nullopt);
  const bool is_it = asked && asked->ps_task == ps_task && asked->offset == offset;
  kj::Promise<std::string> bytes =
      is_it ? kj::mv(asked->bytes) : askFor(ps_task, offset, due(offset));
  const uint64_t next = offset + due(offset);
  if (next < file_bytes) ahead_ = Fetched{ps_task, next, askFor(ps_task, next, due(next))};
  return guard(checkpoint_.control().guard(kj::mv(bytes)));
}

kj::Promise<void> ShardCalls::release(bool saved) {
  ahead_.reset();
  whole_.reset();
  return whenDone(fromEveryPs<Nothing>(checkpoint_.control(), "release its saved shard",
                                       kQuestionSeconds, [&](uint32_t i) {
                                         auto request = checkpoint_.session(i).releaseRequest();
                                         request.setSaved(saved);
                                         return sent(request);
                                       }));
}

// ---- restore

kj::Promise<void> ShardCalls::expect(const checkpoint::CutHead& head) {
  brought_.clear();
  checkpoint_.forgetInterruption();  // the job restores because of it
  begin();
  return guard(whenDone(fromEveryPs<Nothing>(checkpoint_.control(), "make room for a checkpoint",
                                             checkpoint_.diskSeconds(), [&](uint32_t i) {
                                               auto request =
                                                   checkpoint_.session(i).expectRequest();
                                               encodeCutHead(head, request);
                                               return sent(request);
                                             })));
}

kj::Promise<void> ShardCalls::bring(uint32_t ps_task, const checkpoint::ArenaPlace& place,
                                    std::span<const float> values) {
  DTF_CHECK(!values.empty() && values.size_bytes() <= checkpoint::kPieceBytesMax);
  auto request = checkpoint_.session(ps_task).bringRequest();
  const auto* bytes = reinterpret_cast<const kj::byte*>(values.data());
  request.setArena(place.arena);
  request.setOffset(place.offset);
  request.setValues(kj::arrayPtr(bytes, values.size_bytes()));
  request.setChecksum(
      checksumOf({reinterpret_cast<const char*>(values.data()), values.size_bytes()}));
  brought_.push_back(whenDone(fromPs(checkpoint_.control(), ps_task,
                                     pieceText("take", place.offset * sizeof(float)), kPieceSeconds,
                                     sent(request)))
                         .eagerlyEvaluate(nullptr));
  if (brought_.size() < kPiecesUnderWay) return kj::READY_NOW;
  return awaitOldest();
}

kj::Promise<void> ShardCalls::awaitOldest() {
  kj::Promise<void> oldest = kj::mv(brought_.front());
  brought_.pop_front();
  return guard(checkpoint_.control().guard(kj::mv(oldest)));
}

kj::Promise<void> ShardCalls::awaitBrought() {
  if (brought_.empty()) return kj::READY_NOW;
  return awaitOldest().then([this] { return awaitBrought(); });
}

kj::Promise<void> ShardCalls::commit(const checkpoint::GoingBack& target) {
  return awaitBrought().then([this, target] { return checkpoint_.commitRestore(target); });
}

}  // namespace dtf::wire
