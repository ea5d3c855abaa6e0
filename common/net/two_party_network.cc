#include "common/net/two_party_network.h"

#include <capnp/message.h>
#include <kj/debug.h>

#include <utility>

#include "common/base/check.h"

namespace dtf::net {

using capnp::word;

namespace {

// Calls and replies with external tensors fit: such a message is one allocation.
constexpr kj::uint kInlineWords = 64;

}  // namespace

class TwoPartyNetwork::Outgoing final : public capnp::OutgoingRpcMessage, public kj::Refcounted {
 public:
  Outgoing(TwoPartyNetwork& network, kj::uint words)
      : network_(network),
        message_(words <= kInlineWords
                     ? capnp::MallocMessageBuilder(kj::arrayPtr(first_, kInlineWords))
                     : capnp::MallocMessageBuilder(words)) {}

  capnp::AnyPointer::Builder getBody() override { return message_.getRoot<capnp::AnyPointer>(); }
  void send() override { network_.send(*this); }
  size_t sizeInWords() override {
    size_t words = 0;
    for (const auto& segment : segments()) words += segment.size();
    return words;
  }
  uint64_t memoryBytes() { return sizeof(Outgoing) + sizeInWords() * sizeof(word); }
  kj::ArrayPtr<const kj::ArrayPtr<const word>> segments() {
    return message_.getSegmentsForOutput();
  }

 private:
  TwoPartyNetwork& network_;
  word first_[kInlineWords] = {};  // of message_, which requires zeros
  capnp::MallocMessageBuilder message_;
};

class TwoPartyNetwork::Incoming final : public capnp::IncomingRpcMessage {
 public:
  explicit Incoming(kj::Own<capnp::MessageReader> message) : message_(kj::mv(message)) {}

  capnp::AnyPointer::Reader getBody() override { return message_->getRoot<capnp::AnyPointer>(); }
  size_t sizeInWords() override { return message_->sizeInWords(); }

 private:
  kj::Own<capnp::MessageReader> message_;
};

TwoPartyNetwork::TwoPartyNetwork(MessageStream& stream, Side side,
                                 const capnp::ReaderOptions& options, uint64_t queued_bytes_max,
                                 OnDamage on_damage)
    : stream_(stream),
      side_(side),
      options_(options),
      queued_bytes_max_(queued_bytes_max),
      on_damage_(std::move(on_damage)) {
  peer_id_.initRoot<VatId>().setSide(side == Side::CLIENT ? Side::SERVER : Side::CLIENT);
  auto released = kj::newPromiseAndFulfiller<void>();
  disconnected_ = released.promise.fork();
  release_.released = kj::mv(released.fulfiller);
}

TwoPartyNetwork::~TwoPartyNetwork() noexcept(false) {}

void TwoPartyNetwork::Release::disposeImpl(void*) const {
  DTF_CHECK(pointers > 0);
  if (--pointers == 0) released->fulfill();
}

kj::Own<TwoPartyNetwork::Link> TwoPartyNetwork::pointerToThis() {
  ++release_.pointers;
  return kj::Own<Link>(this, release_);
}

kj::Maybe<kj::Own<TwoPartyNetwork::Link>> TwoPartyNetwork::connect(VatId::Reader peer) {
  if (peer.getSide() == side_) return nullptr;
  return pointerToThis();
}

// A client accepts nothing, a server accepts once.
kj::Promise<kj::Own<TwoPartyNetwork::Link>> TwoPartyNetwork::accept() {
  if (side_ == Side::CLIENT || std::exchange(accepted_, true)) return kj::NEVER_DONE;
  return pointerToThis();
}

kj::Own<capnp::OutgoingRpcMessage> TwoPartyNetwork::newOutgoingMessage(
    kj::uint first_segment_words) {
  return kj::refcounted<Outgoing>(*this, first_segment_words);  // 0: unknown
}

void TwoPartyNetwork::send(Outgoing& message) {
  KJ_REQUIRE(!shut_down_, "a message after the connection was shut down");
  observer_.sent(message);
  if (queue_.empty() && stream_.writeNow(message.segments())) return;
  queue_.push_back(kj::addRef(message));
  DTF_CHECK(queue_.size() > 1 || queued_bytes_ == 0);
  if (queue_.size() > 1) {
    queued_bytes_ += message.memoryBytes();
    return;
  }
  // evalNow: the stream may throw, too.
  writing_ = kj::evalNow([this] { return writeQueue(); }).eagerlyEvaluate([this](auto&& error) {
    fail(error);
  });
}

kj::Promise<void> TwoPartyNetwork::writeQueue() {
  DTF_CHECK(!queue_.empty());
  return stream_.writeMessage(nullptr, queue_.front()->segments())
      .then([this]() -> kj::Promise<void> {
        queue_.pop_front();
        if (queue_.empty()) return kj::READY_NOW;
        DTF_CHECK(queued_bytes_ >= queue_.front()->memoryBytes());
        queued_bytes_ -= queue_.front()->memoryBytes();
        letReadingGoOn();
        return writeQueue();
      });
}

void TwoPartyNetwork::fail(const kj::Exception& error) {
  queue_.clear();
  queued_bytes_ = 0;
  if (failure_ == nullptr) failure_ = kj::cp(error);  // later failures follow from it
  reading_.cancel(error);
}

void TwoPartyNetwork::letReadingGoOn() {
  if (queued_bytes_ > queued_bytes_max_ || room_.get() == nullptr) return;
  kj::Own<kj::PromiseFulfiller<void>> room = kj::mv(room_);
  room->fulfill();
}

kj::Promise<kj::Maybe<kj::Own<capnp::IncomingRpcMessage>>>
TwoPartyNetwork::receiveIncomingMessage() {
  using Received = kj::Maybe<kj::Own<capnp::IncomingRpcMessage>>;
  KJ_IF_MAYBE (error, failure_) return kj::cp(*error);
  if (queued_bytes_ > queued_bytes_max_) {
    auto pair = kj::newPromiseAndFulfiller<void>();
    room_ = kj::mv(pair.fulfiller);
    return reading_.wrap(kj::mv(pair.promise)).then([this] { return receiveIncomingMessage(); });
  }
  KJ_IF_MAYBE (message, stream_.takeReady(options_)) return Received(received(kj::mv(*message)));
  return reading_.wrap(stream_.tryReadMessage(nullptr, options_, nullptr))
      .then([this](kj::Maybe<capnp::MessageReaderAndFds>&& read) -> Received {
        KJ_IF_MAYBE (message, read) return Received(received(kj::mv(message->reader)));
        return nullptr;
      })
      .catch_([this](kj::Exception&& exception) -> Received {
        noteDamage();
        kj::throwFatalException(kj::mv(exception));
      });
}

void TwoPartyNetwork::noteDamage() {
  const std::string reason = stream_.damage();
  if (reason.empty() || on_damage_ == nullptr) return;
  std::exchange(on_damage_, nullptr)(reason);
}

kj::Own<capnp::IncomingRpcMessage> TwoPartyNetwork::received(
    kj::Own<capnp::MessageReader> message) {
  auto incoming = kj::heap<Incoming>(kj::mv(message));
  observer_.received(*incoming);
  return incoming;
}

kj::Promise<void> TwoPartyNetwork::shutdown() {
  // Called again by a bootstrap() on a connection that has ended, in a destructor.
  if (std::exchange(shut_down_, true)) return kj::READY_NOW;
  kj::Promise<void> written = queue_.empty() ? kj::Promise<void>(kj::READY_NOW) : kj::mv(writing_);
  return written.then([this] { return stream_.end(); });
}

}  // namespace dtf::net
