#pragma once

// Cap'n Proto messages on a socket. MessageStream is what the RPC layer sees: capnp's interface
// plus ownership of bytes that travel by reference. AsioMessageStream is the real one; wrapStream()
// gives any other stream (a kj pipe in a simulation) the same interface.

#include <capnp/serialize-async.h>

#include <cstdint>
#include <memory>

#include "common/net/asio.h"
#include "common/net/buffer_pool.h"
#include "common/net/send_gate.h"
#include "common/net/transport.h"

namespace dtf::net {

class AsioEventPort;

// Checked against a frame's header before anything is allocated.
struct Limits {
  uint64_t bytes_max = uint64_t{1} << 30;  // one message, all segments
  uint32_t segments_max = 64;              // at most 512, as in capnp
  uint64_t pooled_from_bytes = uint64_t{256}
                               << 10;  // messages this large use the BufferPool and may be pinned
};

// Bytes that have come from the kernel, and gone to it.
struct Traffic {
  uint64_t received = 0;
  uint64_t sent = 0;
  Traffic& operator+=(const Traffic& other) {
    received += other.received;
    sent += other.sent;
    return *this;
  }
};

// Smaller messages are copied as they are, so none of their segments may still be being written
// (DTF_CHECK).
inline constexpr uint64_t kSentAsWrittenFromBytes = uint64_t{16} << 10;

// What a peer may send before it has said who it is.
inline constexpr Limits kLimitsBeforeHello{.bytes_max = 64 << 10, .segments_max = 16};

// Threads: loop-thread only (owners given and got here may be released on any thread).
// Blocks: never.
// Errors: promises reject with kj::Exception: DISCONNECTED when the connection is gone, FAILED when
// the peer sent what no dtf program sends.
class MessageStream : public capnp::MessageStream {
 public:
  virtual ~MessageStream() noexcept(false) {}

  // writeMessage() and tryReadMessage() for what needs no waiting, without a promise.
  // False: nothing has been taken; use writeMessage() when the writes before it are done.
  virtual bool writeNow(kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>> segments) = 0;
  // Null: no whole message has arrived, or none will; tryReadMessage() says which.
  virtual kj::Maybe<kj::Own<capnp::MessageReader>> takeReady(capnp::ReaderOptions options) = 0;

  // `data` is the first byte of an external segment (Orphanage::referenceExternalData) of a message
  // that is going to be written here. `owner` is released when the last byte of that message is
  // with the kernel, or when the connection dies. Call it once per message; kj attachments on the
  // method's promise are released too early. Before the message is sent, for a small one is written
  // at once.
  virtual void keepUntilWritten(const void* data, std::shared_ptr<const void> owner) = 0;

  // Whether a message can leave while it is being written.
  virtual bool sendsAsWritten() const { return false; }
  // The external segment at `data`, of a message of more than kSentAsWrittenFromBytes, leaves as
  // far as `gate` is open; what follows it waits. As keepUntilWritten().
  virtual void sendAsWritten(const void* data, std::shared_ptr<const SendGate> gate) {
    (void)data, (void)gate;
    DTF_CHECK_MSG(false, "this stream takes whole messages");
  }
  // A gate has been opened further.
  virtual void sendMore() {}

  // Shares ownership of the received message that holds `data`, so that its bytes outlive the call
  // or response. Null when the message was too small for the pool (copy it) or is gone.
  virtual std::shared_ptr<const void> pin(const void* data) = 0;

  // For messages whose header has not been read yet. One that is here already may be read before
  // the call before it is served: a peer sends more than kLimitsBeforeHello when it has its answer.
  virtual void setLimits(const Limits& limits) = 0;

  // Bytes taken from the RPC layer and not yet with the kernel.
  virtual uint64_t queuedBytes() const = 0;

  // So far. Of a stream that wraps another: messages, for the bytes are moved by the one inside.
  virtual Traffic traffic() const = 0;
  // While it rises, the peer is there.
  uint64_t moved() const { return traffic().received + traffic().sent; }

  // What the peer sent that no dtf program sends: why the connection has ended. Empty when there
  // was nothing of the kind.
  virtual std::string violation() const = 0;

  // The reason when the connection has ended because a message came with other bytes than were
  // sent. Empty otherwise, and where the bytes pass no network.
  virtual std::string damage() const { return {}; }

  // Whether the peer seems to be on this host: both ends have one address, or are loopback's or no
  // network's at all. A tunnel seems so, too.
  virtual bool isOnThisHost() const = 0;

  // The task that the peer's certificate names ("worker/1"); empty: the connection is plain, and
  // the peer whoever it says it is.
  virtual std::string certifiedPeer() const = 0;
};

// Reads many small messages with one recv, and a large one straight into a pooled buffer, its first
// large segment page-aligned. Gathers small writes until the kj queue is drained, sends large ones
// with one gathering sendmsg. Without TLS every message carries checksums: see frame_check.h. A
// promise may be dropped at any moment: a dropped read loses nothing;
// a dropped write of a large message closes the socket, because the frame is cut.
// Owns: the socket, its TLS, buffers.
// Borrows: `port` (must outlive this).
class AsioMessageStream final : public MessageStream {
 public:
  AsioMessageStream(AsioEventPort& port, Transport transport, const Limits& limits,
                    std::shared_ptr<BufferPool> pool);
  // Hands what is queued to the kernel as far as it takes it without blocking, then closes.
  ~AsioMessageStream() noexcept(false) override;

  bool writeNow(kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>> segments) override;
  kj::Maybe<kj::Own<capnp::MessageReader>> takeReady(capnp::ReaderOptions options) override;
  kj::Promise<kj::Maybe<capnp::MessageReaderAndFds>> tryReadMessage(
      kj::ArrayPtr<kj::AutoCloseFd> fd_space, capnp::ReaderOptions options,
      kj::ArrayPtr<capnp::word> scratch_space) override;
  // File descriptors are not supported; capnp does not send any here.
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

  // Before the first message: none of them gets checksums, as in versions that have none, and for
  // `dtf-bench checksum`.
  void sendUnchecked();

  // Owners given to keepUntilWritten() and still held.
  size_t keptCount() const;

 private:
  std::shared_ptr<class FrameReader>
      reader_;  // shared with Asio's handlers, which may run after this is gone
  std::shared_ptr<class FrameWriter> writer_;
  const std::string certified_peer_;
  const bool is_on_this_host_;
};

// Any stream of bytes or messages as a MessageStream. Only Cap'n Proto's own checks apply: for
// peers in one process.
kj::Own<MessageStream> wrapStream(kj::Own<kj::AsyncIoStream> stream);
kj::Own<MessageStream> wrapStream(kj::Own<capnp::MessageStream> stream);

}  // namespace dtf::net
