#pragma once

// Internal to common/net: the sending half of an AsioMessageStream.

#include <capnp/common.h>
#include <kj/async.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "common/base/checksum.h"
#include "common/net/frame_link.h"
#include "common/net/message_stream.h"

namespace dtf::net {

// Small messages are copied into one buffer, which is sent when the kj queue is drained. A large
// one is sent after them from its own memory, in one gathering call; parts still being written wait
// for their gate. Without TLS each frame has checksums (frame_check.h); a large message is hashed
// while it is sent.
// Owns: buffers; owners of external segments until these are written.
// Threads: loop-thread only.
// Blocks: never.
// Errors: after the first one every write fails, and the socket is shut down so that the reading
// side fails too.
class FrameWriter : public std::enable_shared_from_this<FrameWriter> {
 public:
  using Segments = kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>>;

  explicit FrameWriter(std::shared_ptr<FrameLink> link)
      : link_(std::move(link)), checks_(link_->tls == nullptr) {}

  // Call it before the first message: see AsioMessageStream.
  void sendUnchecked() { checks_ = false; }

  // Copies a small message if no large one is being sent and not too much is queued. Returns false
  // if it took nothing.
  bool writeNow(Segments segments);
  // Resolves when `segments` may be changed and more may be written. One at a time.
  kj::Promise<void> write(Segments segments);
  // Resolves when everything is written; no more may follow.
  kj::Promise<void> end();
  // Tries once more to send queued small messages, then closes the socket and releases all owners.
  void close();

  void keepUntilWritten(const void* data, std::shared_ptr<const void> owner);
  // See MessageStream.
  void sendAsWritten(const void* data, std::shared_ptr<const SendGate> gate);
  void sendMore();
  size_t keptCount() const { return kept_.size(); }
  uint64_t queuedBytes() const;
  uint64_t movedBytes() const { return moved_bytes_; }

 private:
  class LargeWaiter;
  class DrainWaiter;
  // Larger messages are sent from their own memory.
  static constexpr size_t kCopiedBytesMax = kSentAsWrittenFromBytes;
  static constexpr size_t kPendingBytesMax =
      256 << 10;  // copied bytes before write() makes its caller wait

  struct Large {
    std::vector<uint32_t> table;
    std::vector<iovec> pieces;
    std::vector<std::shared_ptr<const SendGate>> gates;  // of the pieces; null: already complete
    size_t next_piece = 0;
    uint64_t bytes_left = 0;
    uint64_t checksum = 0;   // the last piece of a checked frame
    bool is_summed = false;  // the checksum is known: all bytes before it are hashed
    std::vector<std::shared_ptr<const void>> owners;
    kj::PromiseFulfiller<void>* fulfiller = nullptr;
  };
  enum class Sent { kProgress, kWouldBlock, kFailed };

  void copy(Segments segments, size_t bytes);
  kj::Promise<void> writeLarge(Segments segments);
  kj::Promise<void> whenDrained();
  bool idle() const { return !armed_ && !flush_due_ && pending_.empty() && !large_; }
  std::shared_ptr<const SendGate> takeGate(const void* data);
  void releaseOwner(const void* data, std::vector<std::shared_ptr<const void>>& owners);
  void flushSoon();
  void pump();
  void sumUp();
  bool hasOutput();
  bool mustWait() const;
  Sent sendSome(size_t& budget);
  Sent encryptSome(size_t& budget);
  Sent sendEncrypted();
  uint64_t mayLeave() const;
  size_t gather(iovec* pieces, size_t pieces_max) const;
  void consume(size_t bytes);
  void finishLarge();
  void arm();
  void fail(const error_code& ec);
  void wakeDrained();

  const std::shared_ptr<FrameLink> link_;
  bool checks_;
  std::optional<Checksum> hash_;    // of large_; created for the first one
  std::vector<std::byte> pending_;  // copied, not yet being sent
  std::vector<std::byte> flight_;   // copied, being sent from flight_at_ on
  size_t flight_at_ = 0;
  std::shared_ptr<Large> large_;  // goes after flight_, before pending_
  uint64_t moved_bytes_ = 0;
  bool flush_due_ = false;
  bool armed_ = false;  // Asio waits until the socket is writable
  error_code error_;
  std::vector<kj::PromiseFulfiller<void>*> drain_waiters_;
  std::unordered_multimap<const void*, std::shared_ptr<const void>> kept_;
  std::unordered_map<const void*, std::shared_ptr<const SendGate>>
      gates_;  // by the first byte of their segments, until these are written
};

}  // namespace dtf::net
