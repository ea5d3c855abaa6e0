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

// A piece on a line that is slow, and busy with gradients. A ps that is gone is noticed by its
// heartbeats.
inline constexpr double kPieceSeconds = 60;

// The bytes of a piece that `ps` has sent.
// Errors: as kj's, kBadData for another size than `due`, kUnavailable for another checksum.
std::string checkedPiece(capnp::Data::Reader data, uint64_t checksum, uint64_t due,
                         const std::string& ps);

// A transfer, from stage() or expect() on, has one deadline as a whole
// (CheckpointCalls::diskSeconds()), whatever the disk does between two pieces; it ends at once when
// it is interrupted (CheckpointCalls::interruptCuts()) or when the connection to any of the ps
// breaks, whosever piece is under way: what that ps kept is gone, so nothing can come of it.
// Owns: the pieces under way, at most kPiecesUnderWay.
// Borrows: `checkpoint`, which must outlive this.
// Threads: loop-thread only.
// Errors: as promises; see checkpoint::ShardTransfer.
class ShardCalls {
 public:
  explicit ShardCalls(CheckpointCalls& checkpoint);
  ~ShardCalls();
  ShardCalls(const ShardCalls&) = delete;
  ShardCalls& operator=(const ShardCalls&) = delete;

  kj::Promise<std::vector<checkpoint::SavedShard>> stage(const CutPosition& position);
  // Asks for the piece behind it, too: that is under way while this one is written.
  kj::Promise<std::string> fetch(uint32_t ps_task, uint64_t offset, uint64_t file_bytes);
  kj::Promise<void> release(bool saved);

  kj::Promise<void> expect(const checkpoint::CutHead& head);
  // `values` may go when this has returned.
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
  std::deque<kj::Promise<void>> brought_;  // not answered yet
};

}  // namespace dtf::wire
