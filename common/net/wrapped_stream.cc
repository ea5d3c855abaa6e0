// wrapStream(): a MessageStream on top of any stream of Cap'n Proto messages.

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/net/message_stream.h"

namespace dtf::net {

namespace {

using capnp::word;
using Segments = kj::ArrayPtr<const kj::ArrayPtr<const word>>;
using SharedMessage = std::shared_ptr<kj::Own<capnp::MessageReader>>;

// Forwards to a message that pin() may keep alive longer than this.
class SharedReader final : public capnp::MessageReader {
 public:
  SharedReader(const capnp::ReaderOptions& options, SharedMessage message)
      : MessageReader(options), message_(std::move(message)) {}
  kj::ArrayPtr<const word> getSegment(kj::uint id) override { return (*message_)->getSegment(id); }

 private:
  const SharedMessage message_;
};

class WrappedStream final : public MessageStream {
 public:
  WrappedStream(kj::Own<capnp::MessageStream> inner) : inner_(kj::mv(inner)) {}

  // The inner stream only has promises.
  bool writeNow(Segments) override { return false; }
  kj::Maybe<kj::Own<capnp::MessageReader>> takeReady(capnp::ReaderOptions) override {
    return nullptr;
  }

  kj::Promise<kj::Maybe<capnp::MessageReaderAndFds>> tryReadMessage(
      kj::ArrayPtr<kj::AutoCloseFd> fd_space, capnp::ReaderOptions options,
      kj::ArrayPtr<word>) override {
    return inner_->tryReadMessage(fd_space, options, nullptr)
        .then([this, options](kj::Maybe<capnp::MessageReaderAndFds>&& read) {
          KJ_IF_MAYBE (message, read) message->reader = share(options, kj::mv(message->reader));
          ++traffic_.received;
          return kj::mv(read);
        });
  }

  // A message that is still being written is sent when it is complete: the inner stream only takes
  // whole messages.
  kj::Promise<void> writeMessage(kj::ArrayPtr<const int> fds, Segments segments) override {
    DTF_CHECK(fds.size() == 0);  // capnp sends none here
    const std::shared_ptr<const SendGate> gate = takeGate(segments);
    if (gate == nullptr || gate->isOpen()) return writeWhole(segments);
    auto written = kj::newPromiseAndFulfiller<void>();
    waiting_ = {gate, kj::mv(written.fulfiller)};
    return written.promise.then([this, segments] { return writeWhole(segments); });
  }

  kj::Promise<void> writeMessages(kj::ArrayPtr<Segments> messages) override {
    kj::Promise<void> written = kj::READY_NOW;
    for (auto& segments : messages)
      written = written.then([this, segments] { return writeMessage(nullptr, segments); });
    return written;
  }

  kj::Maybe<int> getSendBufferSize() override { return inner_->getSendBufferSize(); }
  kj::Promise<void> end() override { return inner_->end(); }

  void keepUntilWritten(const void* data, std::shared_ptr<const void> owner) override {
    DTF_CHECK(data != nullptr && owner != nullptr);
    kept_.emplace(data, std::move(owner));
  }

  bool sendsAsWritten() const override { return true; }
  void sendAsWritten(const void* data, std::shared_ptr<const SendGate> gate) override {
    DTF_CHECK(data != nullptr && gate != nullptr);
    gates_.insert_or_assign(data, std::move(gate));
  }
  void sendMore() override {
    if (waiting_.gate == nullptr || !waiting_.gate->isOpen()) return;
    waiting_.gate = nullptr;
    waiting_.written->fulfill();
  }

  std::shared_ptr<const void> pin(const void* data) override {
    const auto next = live_.upper_bound(static_cast<const word*>(data));
    if (next == live_.begin()) return nullptr;
    const auto& live = std::prev(next)->second;
    return data < live.end ? live.message.lock() : nullptr;
  }

  void setLimits(const Limits&) override {}  // the peer is in this process
  uint64_t queuedBytes() const override { return queued_bytes_; }
  Traffic traffic() const override { return traffic_; }
  std::string violation() const override { return {}; }
  bool isOnThisHost() const override { return true; }  // it is in this process
  std::string certifiedPeer() const override { return {}; }

 private:
  // A message that is being written.
  struct Waiting {
    std::shared_ptr<const SendGate> gate;  // null: none
    kj::Own<kj::PromiseFulfiller<void>> written;
  };
  struct LiveSegment {
    const word* end;
    std::weak_ptr<kj::Own<capnp::MessageReader>> message;
  };

  kj::Promise<void> writeWhole(Segments segments) {
    uint64_t bytes = 0;
    auto owners = std::make_shared<std::vector<std::shared_ptr<const void>>>();
    for (const auto& segment : segments) {
      bytes += segment.size() * sizeof(word);
      const auto it = kept_.find(segment.begin());
      if (it == kept_.end()) continue;
      owners->push_back(std::move(it->second));
      kept_.erase(it);
    }
    queued_bytes_ += bytes;
    return inner_->writeMessage(nullptr, segments).then([this, bytes, owners] {
      DTF_CHECK(queued_bytes_ >= bytes);
      queued_bytes_ -= bytes;
      ++traffic_.sent;
      owners->clear();
    });
  }

  // Finds the gate of the message's segments; null: all is written.
  std::shared_ptr<const SendGate> takeGate(Segments segments) {
    std::shared_ptr<const SendGate> gate;
    for (const auto& segment : segments) {
      const auto it = gates_.find(segment.begin());
      if (it == gates_.end()) continue;
      gate = std::move(it->second);
      gates_.erase(it);
    }
    return gate;
  }

  kj::Own<capnp::MessageReader> share(const capnp::ReaderOptions& options,
                                      kj::Own<capnp::MessageReader> reader) {
    std::erase_if(live_, [](const auto& entry) { return entry.second.message.expired(); });
    auto message = std::make_shared<kj::Own<capnp::MessageReader>>(kj::mv(reader));
    for (kj::uint id = 0;; ++id) {
      const auto segment = (*message)->getSegment(id);
      if (segment == nullptr) break;
      live_[segment.begin()] = LiveSegment{segment.end(), message};
    }
    return kj::heap<SharedReader>(options, std::move(message));
  }

  kj::Own<capnp::MessageStream> inner_;
  std::unordered_multimap<const void*, std::shared_ptr<const void>> kept_;
  std::unordered_map<const void*, std::shared_ptr<const SendGate>> gates_;
  Waiting waiting_;
  std::map<const word*, LiveSegment> live_;
  uint64_t queued_bytes_ = 0;
  Traffic traffic_;  // messages
};

}  // namespace

kj::Own<MessageStream> wrapStream(kj::Own<capnp::MessageStream> stream) {
  return kj::heap<WrappedStream>(kj::mv(stream));
}

kj::Own<MessageStream> wrapStream(kj::Own<kj::AsyncIoStream> stream) {
  kj::Own<capnp::MessageStream> messages = kj::heap<capnp::AsyncIoMessageStream>(*stream);
  return wrapStream(messages.attach(kj::mv(stream)));
}

}  // namespace dtf::net
