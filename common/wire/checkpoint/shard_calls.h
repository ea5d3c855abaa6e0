#pragma once

// The calls of a checkpoint::ShardTransfer, as promises: the shards of all ps to the chief and
// back, in pieces on the control connections.

#include <kj/async.h>

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/wire/checkpoint/checkpoint_calls.h"

namespace dtf::wire {

// The deadline of a piece, for a slow link that is busy with gradients. Heartbeats detect a ps that
// is gone sooner.
inline constexpr double kPieceSeconds = 60;

// Returns the bytes of a piece from `ps`.
// Errors: as kj exceptions: kBadData for another size than `due`, kUnavailable for another
// checksum.
std::string checkedPiece(capnp::Data::Reader data, uint64_t checksum, uint64_t due,
                         const std::string& ps);

// The chief's transfers of shards. A transfer begins with stage() or expect(), and has one deadline
// as a whole (CheckpointCalls::diskSeconds()), which includes the time that the disk takes between
// pieces. It ends at once when CheckpointCalls::interruptCuts() is called, or when the connection
// to any ps breaks, since that ps has then dropped its part of the transfer.
// Owns: the pieces under way, at most kPiecesUnderWay.
// Borrows: `checkpoint` (must outlive this).
// Threads: loop-thread only.
// Errors: as promises; see checkpoint::ShardTransfer.
class ShardCalls {
 public:
  explicit ShardCalls(CheckpointCalls& checkpoint);
  ~ShardCalls();
  ShardCalls(const ShardCalls&) = delete;
  ShardCalls& operator=(const ShardCalls&) = delete;

  kj::Promise<std::vector<checkpoint::SavedShard>> stage(const CutPosition& position);
  // Requests the next piece, too, so that it is on its way while the caller writes this one.
  kj::Promise<std::string> fetch(uint32_t ps_task, uint64_t offset, uint64_t file_bytes);
  kj::Promise<void> release(bool saved);

  kj::Promise<void> expect(const checkpoint::CutHead& head);
  // Copies `values` before it returns.
  kj::Promise<void> bring(uint32_t ps_task, const checkpoint::ArenaPlace& place,
                          std::span<const float> values);
  kj::Promise<void> commit(const checkpoint::GoingBack& target);

 private:
  struct Fetched {
    uint32_t ps_task = 0;
    uint64_t offset = 0;
    kj::Promise<std::string> bytes = nullptr;
  };
  // A transfer as a whole.
  struct Whole {
    Abort aborted;
    std::optional<Error> why;  // it has ended
    kj::TimePoint deadline = kj::origin<kj::TimePoint>();
  };
  void begin();
  void end(const Error& why);
  template <class T>
  kj::Promise<T> guard(kj::Promise<T> promise);
  kj::Promise<std::string> askFor(uint32_t ps_task, uint64_t offset, uint64_t bytes);
  kj::Promise<void> awaitOldest();
  kj::Promise<void> awaitBrought();

  CheckpointCalls& checkpoint_;
  std::unique_ptr<Whole> whole_;           // null: none has begun
  std::optional<Fetched> ahead_;           // the piece behind the last one that was fetched
  std::deque<kj::Promise<void>> brought_;  // without a reply yet
};

}  // namespace dtf::wire
