#pragma once

// Cap'n Proto messages on a socket. MessageStream is the RPC layer's view: capnp's interface plus
// ownership of bytes sent by reference. AsioMessageStream is the real one; wrapStream() gives any
// other stream (a kj pipe in a simulation) the same interface.

#include <capnp/serialize-async.h>

#include <cstdint>
#include <memory>

#include "common/net/asio.h"
#include "common/net/buffer_pool.h"
#include "common/net/send_gate.h"
#include "common/net/transport.h"

namespace dtf::net {

class AsioEventPort;

// Checked against a frame's header before any allocation.
struct Limits {
  uint64_t bytes_max = uint64_t{1} << 30;  // one message, all segments
  uint32_t segments_max = 64;              // at most 512, as in capnp
  uint64_t pooled_from_bytes = uint64_t{256}
                               << 10;  // messages this large use the BufferPool and may be pinned
};

// Bytes received from the kernel, and sent to it.
struct Traffic {
  uint64_t received = 0;
  uint64_t sent = 0;
  Traffic& operator+=(const Traffic& other) {
    received += other.received;
    sent += other.sent;
    return *this;
  }
};

// Smaller messages are copied at once, so all of their segments must be complete (DTF_CHECK).
inline constexpr uint64_t kSentAsWrittenFromBytes = uint64_t{16} << 10;

// Limits until a peer has identified itself.
inline constexpr Limits kLimitsBeforeHello{.bytes_max = 64 << 10, .segments_max = 16};

// Threads: loop-thread only (owners passed to or from it may be released on any thread).
// Blocks: never.
// Errors: promises reject with kj::Exception: DISCONNECTED if the connection is gone, FAILED if the
// peer violated the protocol.
class MessageStream : public capnp::MessageStream {
 public:
  virtual ~MessageStream() noexcept(false) {}

  // writeMessage() and tryReadMessage() without a promise, if they need not wait.
  // Returns false if it took nothing; use writeMessage() after earlier writes.
  virtual bool writeNow(kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>> segments) = 0;
  // Returns null if no whole message has arrived, or none will; tryReadMessage() tells which.
  virtual kj::Maybe<kj::Own<capnp::MessageReader>> takeReady(capnp::ReaderOptions options) = 0;

  // `data` is the first byte of an external segment (Orphanage::referenceExternalData) of a message
  // that will be written here. `owner` is released when the kernel has the last byte of that
  // message, or when the connection ends. Call it once per message, before sending: a small message
  // is written at once. (kj attachments on the method's promise are released too early.)
  virtual void keepUntilWritten(const void* data, std::shared_ptr<const void> owner) = 0;

  // Returns whether a message can be sent while it is being written.
  virtual bool sendsAsWritten() const { return false; }
  // Sends the external segment at `data`, of a message of more than kSentAsWrittenFromBytes, only
  // as far as `gate` is open; later bytes wait. Call it like keepUntilWritten().
  virtual void sendAsWritten(const void* data, std::shared_ptr<const SendGate> gate) {
    (void)data, (void)gate;
    DTF_CHECK_MSG(false, "this stream takes whole messages");
  }
  // Call it after opening a gate further.
  virtual void sendMore() {}

  // Shares ownership of the received message that contains `data`, so that its bytes outlive the
  // call or reply. Returns null if the message was too small for the pool (copy it) or is gone.
  virtual std::shared_ptr<const void> pin(const void* data) = 0;

  // Applies to messages whose header has not been read. A message that has already arrived may be
  // read before the previous call is served: a peer exceeds kLimitsBeforeHello only after its
  // reply.
  virtual void setLimits(const Limits& limits) = 0;

  // Returns the bytes taken from the RPC layer that the kernel doesn't have yet.
  virtual uint64_t queuedBytes() const = 0;

  // Returns the traffic so far. A stream that wraps another counts messages, because the inner one
  // moves the bytes.
  // As long as it grows, the peer is alive.
  virtual Traffic traffic() const = 0;
  // While it rises, the peer is there.
  uint64_t moved() const { return traffic().received + traffic().sent; }

  // Returns the peer's violation of the protocol that ended the connection; empty if there was
  // none.
  virtual std::string violation() const = 0;

  // Returns the reason if the connection ended because a message arrived damaged. Empty otherwise,
  // and if bytes pass no network.
  virtual std::string damage() const { return {}; }

  // Returns whether the peer appears to be on this host: both ends have the same address, or are on
  // loopback or no network at all. A tunnel appears so, too.
  virtual bool isOnThisHost() const = 0;

  // Returns the task that the peer's certificate names ("worker/1"); empty on a plain connection,
  // where the peer's identity is only a claim.
  virtual std::string certifiedPeer() const = 0;
};

// Reads many small messages with one recv, and a large one directly into a pooled buffer, its first
// large segment page-aligned. Gathers small writes until the kj queue is drained, sends large ones
// with one gathering sendmsg. Without TLS every message carries checksums: see frame_check.h. A
// promise may be dropped at any moment: a dropped read loses nothing; a dropped write of a large
// message closes the socket, because the frame is incomplete.
// Owns: the socket, its TLS, buffers.
// Borrows: `port` (must outlive this).
class AsioMessageStream final : public MessageStream {
 public:
  AsioMessageStream(AsioEventPort& port, Transport transport, const Limits& limits,
                    std::shared_ptr<BufferPool> pool);
  // Passes queued bytes to the kernel as far as possible without blocking, then closes.
  ~AsioMessageStream() noexcept(false) override;

  bool writeNow(kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>> segments) override;
  kj::Maybe<kj::Own<capnp::MessageReader>> takeReady(capnp::ReaderOptions options) override;
  kj::Promise<kj::Maybe<capnp::MessageReaderAndFds>> tryReadMessage(
      kj::ArrayPtr<kj::AutoCloseFd> fd_space, capnp::ReaderOptions options,
      kj::ArrayPtr<capnp::word> scratch_space) override;
  // File descriptors are not supported; capnp sends none here.
  kj::Promise<void> writeMessage(
      kj::ArrayPtr<const int> fds,
      kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>> segments) override;
  kj::Promise<void> writeMessages(
      kj::ArrayPtr<kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>>> messages) override;
  kj::Maybe<int> getSendBufferSize() override { return nullptr; }
  kj::Promise<void> end() override;

  void keepUntilWritten(const void* data, std::shared_ptr<const void> owner) override;
  bool sendsAsWritten() const override { return true; }
  void sendAsWritten(const void* data, std::shared_ptr<const SendGate> gate) override;
  void sendMore() override;
  std::shared_ptr<const void> pin(const void* data) override;
  void setLimits(const Limits& limits) override;
  uint64_t queuedBytes() const override;
  Traffic traffic() const override;
  std::string violation() const override;
  std::string damage() const override;
  bool isOnThisHost() const override { return is_on_this_host_; }
  std::string certifiedPeer() const override;

  // Call it before the first message: disables checksums, as in versions without them, and for
  // `dtf-bench checksum`.
  void sendUnchecked();

  // Returns the number of owners still held for keepUntilWritten().
  size_t keptCount() const;

 private:
  std::shared_ptr<class FrameReader>
      reader_;  // shared with Asio's handlers, which may outlive this
  std::shared_ptr<class FrameWriter> writer_;
  const std::string certified_peer_;
  const bool is_on_this_host_;
};

// Wraps any stream of bytes or messages as a MessageStream. Only Cap'n Proto's own checks apply:
// for peers in one process.
kj::Own<MessageStream> wrapStream(kj::Own<kj::AsyncIoStream> stream);
kj::Own<MessageStream> wrapStream(kj::Own<capnp::MessageStream> stream);

}  // namespace dtf::net
