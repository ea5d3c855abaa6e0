#pragma once

// Internal to common/net: the RPC layer's view of a connection. It replaces
// capnp::TwoPartyVatNetwork with less work per message: a small message that can be sent at once,
// and one that has already arrived, pass without a promise.

#include <capnp/rpc-twoparty.h>
#include <kj/async.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <string>

#include "common/net/call_observer.h"
#include "common/net/message_stream.h"

namespace dtf::net {

// Owns: messages until they are written.
// Borrows: `stream` (must outlive this).
// Threads: loop-thread only. Destroyed after the RPC system that uses it.
// Blocks: never.
// Errors: a write error also fails the reading side, since the RPC layer ignores write errors.
class TwoPartyNetwork final : public capnp::TwoPartyVatNetworkBase,
                              private capnp::TwoPartyVatNetworkBase::Connection {
 public:
  using Side = capnp::rpc::twoparty::Side;
  using VatId = capnp::rpc::twoparty::VatId;
  using Link = capnp::TwoPartyVatNetworkBase::Connection;

  using OnDamage = std::function<void(const std::string& reason)>;

  // Nothing is received while more than `queued_bytes_max` wait to be written. `on_damage`, which
  // may be null, is called once if the stream ends with a damaged message.
  TwoPartyNetwork(MessageStream& stream, Side side, const capnp::ReaderOptions& options,
                  uint64_t queued_bytes_max = UINT64_MAX, OnDamage on_damage = nullptr);
  ~TwoPartyNetwork() noexcept(false);
  TwoPartyNetwork(const TwoPartyNetwork&) = delete;
  TwoPartyNetwork& operator=(const TwoPartyNetwork&) = delete;

  Side side() const { return side_; }
  // Resolves when the RPC layer has released the connection.
  kj::Promise<void> onDisconnect() { return disconnected_.addBranch(); }
  // Returns the bytes of the messages behind the one being written.
  uint64_t queuedBytes() const { return queued_bytes_; }

  kj::Maybe<kj::Own<Link>> connect(VatId::Reader peer) override;
  kj::Promise<kj::Own<Link>> accept() override;

 private:
  class Outgoing;
  class Incoming;
  // The RPC layer releases the connection by disposing of every pointer to it.
  class Release final : public kj::Disposer {
   public:
    void disposeImpl(void* pointer) const override;
    mutable kj::Own<kj::PromiseFulfiller<void>> released;
    mutable uint32_t pointers = 0;
  };

  kj::Own<capnp::OutgoingRpcMessage> newOutgoingMessage(kj::uint first_segment_words) override;
  kj::Promise<kj::Maybe<kj::Own<capnp::IncomingRpcMessage>>> receiveIncomingMessage() override;
  kj::Promise<void> shutdown() override;
  VatId::Reader getPeerVatId() override { return peer_id_.getRoot<VatId>().asReader(); }

  kj::Own<Link> pointerToThis();
  void send(Outgoing& message);
  kj::Promise<void> writeQueue();
  void fail(const kj::Exception& error);
  void letReadingGoOn();
  void noteDamage();
  kj::Own<capnp::IncomingRpcMessage> received(kj::Own<capnp::MessageReader> message);

  MessageStream& stream_;
  const Side side_;
  const capnp::ReaderOptions options_;
  const uint64_t queued_bytes_max_;
  OnDamage on_damage_;  // null after it was called
  capnp::MallocMessageBuilder peer_id_{8};
  bool accepted_ = false;
  bool shut_down_ = false;
  Release release_;
  kj::ForkedPromise<void> disconnected_ = nullptr;
  std::deque<kj::Own<Outgoing>> queue_;       // in order; the first is being written
  uint64_t queued_bytes_ = 0;                 // of the others
  kj::Own<kj::PromiseFulfiller<void>> room_;  // set while reading waits for the queue to shrink
  kj::Maybe<kj::Exception> failure_;
  CallObserver observer_;
  kj::Canceler reading_;
  kj::Promise<void> writing_ = nullptr;  // done when queue_ is empty; dies first
};

}  // namespace dtf::net
