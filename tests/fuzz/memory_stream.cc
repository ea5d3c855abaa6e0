#include "tests/fuzz/memory_stream.h"

#include <kj/debug.h>

#include <cstring>
#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/base/check.h"

namespace dtf::fuzz {

namespace {

using capnp::word;
using Segment = kj::ArrayPtr<const word>;
using Segments = kj::ArrayPtr<const Segment>;
using Kept = std::unordered_multimap<const void*, std::shared_ptr<const void>>;

// One message.
struct Bytes {
  kj::Array<word> words;
  std::vector<Segment> segments;  // of `words`
};

std::shared_ptr<const Bytes> copyOf(Segments segments) {
  size_t words = 0;
  for (const Segment& segment : segments) words += segment.size();
  auto copy = std::make_shared<Bytes>(Bytes{kj::heapArray<word>(words), {}});
  word* to = copy->words.begin();
  for (const Segment& segment : segments) {
    if (segment.size() > 0) std::memcpy(to, segment.begin(), segment.size() * sizeof(word));
    copy->segments.emplace_back(to, segment.size());
    to += segment.size();
  }
  DTF_CHECK(to == copy->words.end());
  return copy;
}

class Reader final : public capnp::MessageReader {
 public:
  Reader(const capnp::ReaderOptions& options, std::shared_ptr<const Bytes> bytes)
      : MessageReader(options), bytes_(std::move(bytes)) {}
  Segment getSegment(kj::uint id) override {
    return id < bytes_->segments.size() ? bytes_->segments[id] : nullptr;
  }

 private:
  const std::shared_ptr<const Bytes> bytes_;  // shared with pin()
};

// One direction. Shared by its two ends and by the promises of both, which may outlive them.
struct Pipe {
  std::deque<std::shared_ptr<const Bytes>> unread;
  size_t unread_bytes = 0;
  bool ended = false;                               // nothing more comes
  bool reader_gone = false;                         // nothing more is read
  kj::PromiseFulfiller<void>* on_unread = nullptr;  // for the reader
  kj::PromiseFulfiller<void>* on_room = nullptr;    // for the writer

  static void wake(kj::PromiseFulfiller<void>*& waiter) {
    if (waiter != nullptr) std::exchange(waiter, nullptr)->fulfill();
  }
};

using WaiterOf = kj::PromiseFulfiller<void>* Pipe::*;

// A promise that waits at a pipe. It may be dropped at any time.
class Waiter {
 public:
  Waiter(kj::PromiseFulfiller<void>& fulfiller, std::shared_ptr<Pipe> pipe, WaiterOf place)
      : fulfiller_(fulfiller), pipe_(std::move(pipe)), place_(place) {
    DTF_CHECK(pipe_.get()->*place_ == nullptr);
    pipe_.get()->*place_ = &fulfiller_;
  }
  ~Waiter() {
    if (pipe_.get()->*place_ == &fulfiller_) pipe_.get()->*place_ = nullptr;
  }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

 private:
  kj::PromiseFulfiller<void>& fulfiller_;
  const std::shared_ptr<Pipe> pipe_;
  const WaiterOf place_;
};

kj::Promise<void> wait(const std::shared_ptr<Pipe>& pipe, WaiterOf place) {
  return kj::newAdaptedPromise<void, Waiter>(pipe, place);
}

size_t bytesOf(Segments segments) {
  size_t bytes = 0;
  for (const Segment& segment : segments) bytes += segment.size() * sizeof(word);
  return bytes;
}

class MemoryStream final : public net::MessageStream {
 public:
  MemoryStream(std::shared_ptr<Pipe> in, std::shared_ptr<Pipe> out)
      : in_(std::move(in)), out_(std::move(out)) {}

  ~MemoryStream() noexcept(false) override {
    in_->reader_gone = true;
    in_->unread.clear();
    Pipe::wake(in_->on_room);
    endWrites();
  }

  bool writeNow(Segments segments) override {
    if (out_->reader_gone || out_->ended) return false;
    if (out_->unread_bytes + bytesOf(segments) > kUnreadBytesMax) return false;
    put(segments);
    return true;
  }

  kj::Promise<void> writeMessage(kj::ArrayPtr<const int>, Segments segments) override {
    KJ_REQUIRE(!out_->ended, "a message after the end");
    if (out_->reader_gone) return KJ_EXCEPTION(DISCONNECTED, "the peer has gone");
    put(segments);
    if (out_->unread_bytes <= kUnreadBytesMax) return kj::READY_NOW;
    return wait(out_, &Pipe::on_room);
  }

  kj::Promise<void> writeMessages(kj::ArrayPtr<Segments> messages) override {
    kj::Promise<void> written = kj::READY_NOW;
    for (auto& segments : messages)
      written = written.then([this, segments] { return writeMessage(nullptr, segments); });
    return written;
  }

  kj::Maybe<kj::Own<capnp::MessageReader>> takeReady(capnp::ReaderOptions options) override {
    if (in_->unread.empty()) return nullptr;
    return kj::Maybe<kj::Own<capnp::MessageReader>>(take(options));
  }

  kj::Promise<kj::Maybe<capnp::MessageReaderAndFds>> tryReadMessage(kj::ArrayPtr<kj::AutoCloseFd>,
                                                                    capnp::ReaderOptions options,
                                                                    kj::ArrayPtr<word>) override {
    using Result = kj::Maybe<capnp::MessageReaderAndFds>;
    if (!in_->unread.empty()) return Result(capnp::MessageReaderAndFds{take(options), nullptr});
    if (in_->ended) return Result(nullptr);
    return wait(in_, &Pipe::on_unread).then([this, options] {
      return tryReadMessage(nullptr, options, nullptr);
    });
  }

  kj::Maybe<int> getSendBufferSize() override { return nullptr; }
  kj::Promise<void> end() override {
    endWrites();
    return kj::READY_NOW;
  }

  void keepUntilWritten(const void* data, std::shared_ptr<const void> owner) override {
    DTF_CHECK(data != nullptr && owner != nullptr);
    kept_.emplace(data, std::move(owner));
  }

  // Pins one of the last messages read: older ones have been answered.
  std::shared_ptr<const void> pin(const void* data) override {
    for (const auto& weak : live_) {
      const auto bytes = weak.lock();
      if (bytes == nullptr) continue;
      if (data >= bytes->words.begin() && data < bytes->words.end()) return bytes;
    }
    return nullptr;
  }

  void setLimits(const net::Limits&) override {}
  uint64_t queuedBytes() const override { return out_->unread_bytes; }
  net::Traffic traffic() const override { return traffic_; }
  std::string violation() const override { return {}; }
  bool isOnThisHost() const override { return true; }
  std::string certifiedPeer() const override { return {}; }

 private:
  static constexpr size_t kLiveMax = 16;

  void put(Segments segments) {
    out_->unread.push_back(copyOf(segments));
    out_->unread_bytes += bytesOf(segments);
    traffic_.sent += bytesOf(segments);
    if (!kept_.empty())
      for (const Segment& segment : segments) kept_.erase(segment.begin());
    Pipe::wake(out_->on_unread);
  }

  kj::Own<capnp::MessageReader> take(const capnp::ReaderOptions& options) {
    auto bytes = std::move(in_->unread.front());
    in_->unread.pop_front();
    const size_t taken = bytes->words.size() * sizeof(word);
    DTF_CHECK(in_->unread_bytes >= taken);
    in_->unread_bytes -= taken;
    traffic_.received += taken;
    if (in_->unread_bytes <= kUnreadBytesMax) Pipe::wake(in_->on_room);
    if (live_.size() == kLiveMax) live_.pop_front();
    live_.push_back(bytes);
    return kj::heap<Reader>(options, std::move(bytes));
  }

  void endWrites() {
    out_->ended = true;
    Pipe::wake(out_->on_unread);
  }

  const std::shared_ptr<Pipe> in_;
  const std::shared_ptr<Pipe> out_;
  Kept kept_;
  net::Traffic traffic_;
  std::deque<std::weak_ptr<const Bytes>> live_;
};

}  // namespace

StreamPair memoryStreams() {
  auto there = std::make_shared<Pipe>();
  auto back = std::make_shared<Pipe>();
  return {kj::heap<MemoryStream>(back, there), kj::heap<MemoryStream>(there, back)};
}

}  // namespace dtf::fuzz
