// FrameReader, second part: reading from the socket into its buffers.

#include <kj/debug.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/net/frame_reader.h"

namespace dtf::net {

// Exists as long as the promise of whenMore().
class FrameReader::MoreWaiter {
 public:
  MoreWaiter(kj::PromiseFulfiller<void>& fulfiller, std::shared_ptr<FrameReader> reader)
      : reader_(std::move(reader)), fulfiller_(fulfiller) {
    reader_->waiter_ = &fulfiller_;
    reader_->startRead();
  }
  ~MoreWaiter() {
    if (reader_->waiter_ == &fulfiller_) reader_->waiter_ = nullptr;
  }
  MoreWaiter(const MoreWaiter&) = delete;
  MoreWaiter& operator=(const MoreWaiter&) = delete;

 private:
  const std::shared_ptr<FrameReader> reader_;
  kj::PromiseFulfiller<void>& fulfiller_;
};

kj::Promise<void> FrameReader::whenMore() {
  KJ_REQUIRE(waiter_ == nullptr, "two reads of one stream at a time");
  return kj::newAdaptedPromise<void, MoreWaiter>(shared_from_this());
}

void FrameReader::startRead() {
  if (at_end_ || read_error_) return wakeWaiter();
  if (reading_) return;
  reading_ = true;
  if (body_) return readBody(body_->memory);
  readInput();
}

// The handler owns `memory`: the destination outlives the message if the stream is destroyed
// meanwhile.
void FrameReader::readBody(std::shared_ptr<std::byte> memory) {
  DTF_CHECK(body_ && body_->memory == memory && !body_->isWhole());
  const auto room = bodyRoom();
  link_->readAsync(room,
                   [self = shared_from_this(), memory = std::move(memory)](
                       const error_code& ec, size_t bytes) { self->onRead(ec, bytes, memory); });
}

// Returns the room for all missing bytes, or for one hashed part.
asio::mutable_buffer FrameReader::bodyRoom() const {
  const size_t missing = body_->header.wireBytes() - body_->filled;
  return asio::buffer(
      body_->memory.get() + body_->filled,
      body_->header.checksum_bytes == 0 ? missing : std::min(missing, kHashedBytesMax));
}

void FrameReader::readInput() {
  constexpr size_t kRoomMin = 4096;
  if (kInputBytes - end_ < kRoomMin) {
    std::memmove(input_.get(), input_.get() + begin_, available());
    end_ = available();
    begin_ = 0;
  }
  DTF_CHECK(!body_ && end_ < kInputBytes);
  link_->readAsync(asio::buffer(input_.get() + end_, kInputBytes - end_),
                   [self = shared_from_this()](const error_code& ec, size_t bytes) {
                     self->onRead(ec, bytes, nullptr);
                   });
}

void FrameReader::onRead(const error_code& ec, size_t bytes,
                         const std::shared_ptr<std::byte>& memory) {
  AsioEventPort::Io io(link_->port);
  DTF_CHECK(reading_);
  reading_ = false;
  moved_bytes_ += bytes;
  if (ec) {
    noteError(ec);
  } else if (memory == nullptr) {
    DTF_CHECK(bytes <= kInputBytes - end_);
    end_ += bytes;
  } else {
    DTF_CHECK(body_ && body_->memory == memory);
    body_->filled += bytes;
    hashFilled();
    drainBody();
    // A message in progress costs no kj event per fragment.
    if (!body_->isWhole() && !at_end_ && !read_error_) return startRead();
  }
  wakeWaiter();
}

// Reads available bytes, up to a burst; then the loop serves other connections.
void FrameReader::drainBody() {
  size_t budget = kBurstBytes;
  while (!body_->isWhole() && budget > 0) {
    error_code ec;
    const size_t got = link_->readNow(bodyRoom(), ec);
    if (ec == asio::error::would_block) return;
    if (ec) return noteError(ec);
    body_->filled += got;
    moved_bytes_ += got;
    DTF_CHECK(body_->filled <= body_->header.wireBytes());
    hashFilled();
    budget -= std::min(budget, got);
  }
}

void FrameReader::noteError(const error_code& ec) {
  if (ec == asio::error::eof) {
    at_end_ = true;
  } else {
    read_error_ = ec;
  }
}

void FrameReader::wakeWaiter() {
  if (auto* waiter = std::exchange(waiter_, nullptr)) waiter->fulfill();
}

}  // namespace dtf::net
