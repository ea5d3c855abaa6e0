#pragma once

// Internal to common/net: the receiving half of an AsioMessageStream.

#include <capnp/message.h>
#include <kj/async.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/checksum.h"
#include "common/net/frame_check.h"
#include "common/net/frame_link.h"
#include "common/net/message_stream.h"

namespace dtf::net {

// Splits the byte stream into messages, and compares their checksums. The peer's first frame
// decides whether it sends them. Asio only holds memory owned by this object or by a pooled buffer,
// never memory of a kj promise. So a promise may be dropped at any moment, and the next one
// continues.
// Owns: input buffer, the message being filled.
// Threads: loop-thread only.
// Blocks: never.
// Errors: sticky, see take().
class FrameReader : public std::enable_shared_from_this<FrameReader> {
 public:
  enum class Next { kMessage, kNeedMore, kEnd, kFailed };

  // `pool` null: the memory of a large message is freed after it.
  FrameReader(std::shared_ptr<FrameLink> link, const Limits& limits,
              std::shared_ptr<BufferPool> pool);

  void setLimits(const Limits& limits);

  // Takes the next complete message. kEnd: the peer has closed between two messages. kFailed: see
  // failure().
  Next take(const capnp::ReaderOptions& options, kj::Own<capnp::MessageReader>& message);
  const kj::Exception& failure() const { return *failure_; }
  // Returns the reason if the failure is the peer's fault; empty otherwise.
  std::string violation() const;
  // Returns the reason if a message arrived damaged; empty otherwise.
  const std::string& damage() const { return damage_; }

  // Resolves when take() is worth another try. One at a time.
  kj::Promise<void> whenMore();

  std::shared_ptr<const void> pin(const void* data);
  uint64_t movedBytes() const { return moved_bytes_; }

 private:
  class MoreWaiter;
  static constexpr size_t kInputBytes = 64 << 10;
  static constexpr uint32_t kSegmentsMax = 512;  // a segment table always fits in the input buffer

  struct Header {
    std::vector<uint32_t> segment_words;
    size_t table_bytes = 0;
    size_t body_bytes = 0;
    size_t checksum_bytes = 0;  // after the body; 0 if the peer sends none
    size_t wireBytes() const { return body_bytes + checksum_bytes; }
  };
  // A message that did not arrive completely together with its header.
  struct Body {
    std::shared_ptr<std::byte> memory;
    size_t filled = 0;
    size_t hashed = 0;
    Header header;
    bool isWhole() const { return filled == header.wireBytes(); }
  };
  enum class Checks : uint8_t { kUnknown, kSent, kNone };
  struct Live {
    std::weak_ptr<std::byte> memory;
    size_t bytes = 0;
  };

  size_t available() const { return end_ - begin_; }
  bool readHeader(Header& header);
  bool isGoodCount(uint64_t segments);  // false: it has failed
  bool learnChecks(const std::byte* table, uint32_t segments, bool& is_checked);
  bool startBody(Header header);  // false: it has failed
  Next takeSmall(const Header& header, const capnp::ReaderOptions& options,
                 kj::Own<capnp::MessageReader>& message);
  Next takeBody(const capnp::ReaderOptions& options, kj::Own<capnp::MessageReader>& message);
  void hashFilled();
  Next damaged(std::string reason);
  Next endOfInput();
  Next fail(kj::Exception::Type type, std::string reason);
  void consume(size_t bytes);

  void startRead();
  void readBody(std::shared_ptr<std::byte> memory);
  asio::mutable_buffer bodyRoom() const;
  void readInput();
  void onRead(const error_code& ec, size_t bytes, const std::shared_ptr<std::byte>& memory);
  void drainBody();
  void noteError(const error_code& ec);
  void wakeWaiter();

  const std::shared_ptr<FrameLink> link_;
  const std::shared_ptr<BufferPool> pool_;
  Limits limits_;
  const std::unique_ptr<std::byte[]> input_;
  size_t begin_ = 0;
  size_t end_ = 0;
  uint64_t moved_bytes_ = 0;
  bool first_frame_ = true;
  Checks checks_;
  Header header_;  // of the next message; keeps its memory
  std::optional<Body> body_;
  std::optional<Checksum> hash_;           // of body_; created for the first one
  std::map<const std::byte*, Live> live_;  // pooled messages that may still be in use, for pin()
  bool reading_ = false;                   // Asio holds input_ or body_'s memory
  bool at_end_ = false;
  error_code read_error_;
  std::optional<kj::Exception> failure_;
  std::string damage_;
  kj::PromiseFulfiller<void>* waiter_ = nullptr;
};

}  // namespace dtf::net
