#include "common/net/frame_writer.h"

#include <kj/debug.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/net/error_bridge.h"
#include "common/net/frame_check.h"

namespace dtf::net {

using capnp::word;

// Exists as long as the promise of a large write. If that is dropped early, the pieces point to
// memory that may be freed at once, and the frame on the wire is incomplete. Nothing can follow it,
// so the connection ends.
class FrameWriter::LargeWaiter {
 public:
  LargeWaiter(kj::PromiseFulfiller<void>& fulfiller, std::shared_ptr<FrameWriter> writer)
      : writer_(std::move(writer)), large_(writer_->large_) {
    DTF_CHECK(large_ != nullptr && large_->fulfiller == nullptr);
    large_->fulfiller = &fulfiller;
  }
  ~LargeWaiter() {
    if (large_->fulfiller == nullptr) return;
    large_->fulfiller = nullptr;
    if (writer_->large_ != large_) return;
    writer_->large_ = nullptr;
    writer_->error_ = asio::error::operation_aborted;
    error_code ignored;
    writer_->link_->socket.close(ignored);
  }
  LargeWaiter(const LargeWaiter&) = delete;
  LargeWaiter& operator=(const LargeWaiter&) = delete;

 private:
  const std::shared_ptr<FrameWriter> writer_;
  const std::shared_ptr<Large> large_;
};

class FrameWriter::DrainWaiter {
 public:
  DrainWaiter(kj::PromiseFulfiller<void>& fulfiller, std::shared_ptr<FrameWriter> writer)
      : writer_(std::move(writer)), fulfiller_(fulfiller) {
    writer_->drain_waiters_.push_back(&fulfiller_);
  }
  ~DrainWaiter() { std::erase(writer_->drain_waiters_, &fulfiller_); }
  DrainWaiter(const DrainWaiter&) = delete;
  DrainWaiter& operator=(const DrainWaiter&) = delete;

 private:
  const std::shared_ptr<FrameWriter> writer_;
  kj::PromiseFulfiller<void>& fulfiller_;
};

namespace {

// Returns the segments of the frame: with checksums there are more than the message's.
size_t segmentsOf(FrameWriter::Segments segments, bool checks) {
  const auto count = static_cast<uint32_t>(segments.size());
  return checks ? checkedCount(count) : count;
}

size_t tableWords(FrameWriter::Segments segments, bool checks) {
  return segmentsOf(segments, checks) / 2 + 1;
}

size_t frameBytes(FrameWriter::Segments segments, bool checks) {
  KJ_REQUIRE(segments.size() > 0, "a message without segments");
  size_t words = tableWords(segments, checks);
  for (const auto& segment : segments) words += segment.size();
  return words * sizeof(word) + (checks ? kChecksumBytes : 0);
}

// Fills the frame's header: number of segments - 1, the sizes in words, padding to a whole word.
void fillTable(uint32_t* table, FrameWriter::Segments segments, bool checks) {
  const size_t count = segmentsOf(segments, checks);
  table[0] = static_cast<uint32_t>(count - 1);
  for (size_t i = 0; i < count; ++i)
    table[i + 1] = i < segments.size() ? static_cast<uint32_t>(segments[i].size()) : 0;
  if (count % 2 == 0) table[count + 1] = 0;
  if (!checks) return;
  table[count] = kChecksumBytes / sizeof(word);
  table[count + 1] =
      tableCheck(reinterpret_cast<const std::byte*>(table), static_cast<uint32_t>(count));
}

}  // namespace

bool FrameWriter::writeNow(Segments segments) {
  if (error_ || large_ || pending_.size() > kPendingBytesMax) return false;
  const size_t bytes = frameBytes(segments, checks_);
  if (bytes > kCopiedBytesMax) return false;
  copy(segments, bytes);
  return true;
}

kj::Promise<void> FrameWriter::write(Segments segments) {
  if (error_) return toKj(error_, "write");
  KJ_REQUIRE(large_ == nullptr, "two writes to one stream at a time");
  const size_t bytes = frameBytes(segments, checks_);
  if (bytes > kCopiedBytesMax) return writeLarge(segments);
  copy(segments, bytes);
  if (pending_.size() > kPendingBytesMax) return whenDrained();
  return kj::READY_NOW;
}

void FrameWriter::copy(Segments segments, size_t bytes) {
  const size_t start = pending_.size();
  pending_.resize(start + bytes);
  std::byte* at = pending_.data() + start;
  fillTable(reinterpret_cast<uint32_t*>(at), segments, checks_);
  at += tableWords(segments, checks_) * sizeof(word);
  std::vector<std::shared_ptr<const void>> copied;
  for (const auto& segment : segments) {
    if (segment.size() > 0) std::memcpy(at, segment.begin(), segment.size() * sizeof(word));
    at += segment.size() * sizeof(word);
    DTF_CHECK(takeGate(segment.begin()) == nullptr);  // a small message must be complete
    releaseOwner(segment.begin(), copied);
  }
  if (checks_) {
    const uint64_t checksum = checksumOf(
        {reinterpret_cast<const char*>(pending_.data() + start), bytes - kChecksumBytes});
    std::memcpy(at, &checksum, kChecksumBytes);
    at += kChecksumBytes;
  }
  DTF_CHECK(at == pending_.data() + pending_.size());
  flushSoon();
}

kj::Promise<void> FrameWriter::writeLarge(Segments segments) {
  const size_t table_words = tableWords(segments, checks_);
  auto large = std::make_shared<Large>();
  large->table.resize(table_words * 2);
  fillTable(large->table.data(), segments, checks_);
  large->pieces.reserve(segments.size() + 2);
  large->gates.reserve(segments.size() + 2);
  const auto add = [&large](const void* data, size_t bytes, std::shared_ptr<const SendGate> gate) {
    if (bytes == 0) return;
    large->pieces.push_back({const_cast<void*>(data), bytes});
    large->gates.push_back(std::move(gate));
    large->bytes_left += bytes;
  };
  add(large->table.data(), table_words * sizeof(word), nullptr);
  for (const auto& segment : segments) {
    add(segment.begin(), segment.size() * sizeof(word), takeGate(segment.begin()));
    releaseOwner(segment.begin(), large->owners);
  }
  if (checks_) {
    add(&large->checksum, kChecksumBytes, nullptr);
    if (!hash_) hash_.emplace();
    hash_->reset();
  }
  DTF_CHECK(large_ == nullptr && large->bytes_left > kCopiedBytesMax);
  flight_.insert(flight_.end(), pending_.begin(), pending_.end());  // the small ones came first
  pending_.clear();
  large_ = std::move(large);
  auto promise = kj::newAdaptedPromise<void, LargeWaiter>(shared_from_this());
  if (!armed_) pump();
  return promise;
}

kj::Promise<void> FrameWriter::whenDrained() {
  return kj::newAdaptedPromise<void, DrainWaiter>(shared_from_this());
}

kj::Promise<void> FrameWriter::end() {
  if (error_) return toKj(error_, "end");
  auto drained = idle() ? kj::Promise<void>(kj::READY_NOW) : whenDrained();
  return drained.then([self = shared_from_this()] {
    error_code ignored;  // a peer that is gone needs no goodbye
    self->link_->socket.shutdown(Socket::shutdown_send, ignored);
  });
}

void FrameWriter::close() {
  if (!error_ && !large_ && link_->socket.is_open()) {
    size_t budget = kBurstBytes;
    while (hasOutput() && sendSome(budget) == Sent::kProgress) {
    }
    if (link_->tls != nullptr) (void)link_->tls->flush();
  }
  error_ = asio::error::operation_aborted;
  error_code ignored;
  link_->socket.close(ignored);
  large_ = nullptr;
  kept_.clear();
  gates_.clear();
}

void FrameWriter::keepUntilWritten(const void* data, std::shared_ptr<const void> owner) {
  DTF_CHECK(data != nullptr && owner != nullptr);
  kept_.emplace(data, std::move(owner));
}

void FrameWriter::sendAsWritten(const void* data, std::shared_ptr<const SendGate> gate) {
  DTF_CHECK(data != nullptr && gate != nullptr);
  gates_.insert_or_assign(data, std::move(gate));
}

std::shared_ptr<const SendGate> FrameWriter::takeGate(const void* data) {
  if (gates_.empty()) return nullptr;
  const auto it = gates_.find(data);
  if (it == gates_.end()) return nullptr;
  auto gate = std::move(it->second);
  gates_.erase(it);
  return gate;
}

uint64_t FrameWriter::queuedBytes() const {
  return pending_.size() + flight_.size() - flight_at_ + (large_ ? large_->bytes_left : 0) +
         (link_->tls ? link_->tls->unsent() : 0);
}

// Moves one owner of the segment at `data`, if any, to `owners`.
void FrameWriter::releaseOwner(const void* data, std::vector<std::shared_ptr<const void>>& owners) {
  if (kept_.empty()) return;
  const auto it = kept_.find(data);
  if (it == kept_.end()) return;
  owners.push_back(std::move(it->second));
  kept_.erase(it);
}

}  // namespace dtf::net
