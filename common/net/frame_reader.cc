#include "common/net/frame_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/net/error_bridge.h"
#include "common/net/preamble.h"

namespace dtf::net {

using capnp::word;

namespace {

constexpr size_t kMemoryPageBytes = 4096;

// Owns its bytes alone (small) or together with pin()s (pooled).
class ReceivedMessage final : public capnp::MessageReader {
 public:
  ReceivedMessage(const capnp::ReaderOptions& options, kj::Array<word> words,
                  std::span<const uint32_t> segment_words)
      : MessageReader(options), words_(kj::mv(words)) {
    cut(words_.begin(), segment_words);
  }
  ReceivedMessage(const capnp::ReaderOptions& options, std::shared_ptr<std::byte> memory,
                  std::span<const uint32_t> segment_words)
      : MessageReader(options), memory_(std::move(memory)) {
    cut(reinterpret_cast<const word*>(memory_.get()), segment_words);
  }
  kj::ArrayPtr<const word> getSegment(kj::uint id) override {
    if (id == 0) return first_;
    return id <= others_.size() ? others_[id - 1] : nullptr;
  }

 private:
  void cut(const word* at, std::span<const uint32_t> segment_words) {
    DTF_CHECK(!segment_words.empty());
    first_ = kj::arrayPtr(at, segment_words[0]);
    at += segment_words[0];
    others_.reserve(segment_words.size() - 1);
    for (const uint32_t words : segment_words.subspan(1)) {
      others_.push_back(kj::arrayPtr(at, words));
      at += words;
    }
  }
  kj::Array<word> words_;
  std::shared_ptr<std::byte> memory_;
  kj::ArrayPtr<const word> first_;
  std::vector<kj::ArrayPtr<const word>> others_;
};

// A call or a reply without tensors: one segment, one allocation.
class SmallMessage final : public capnp::MessageReader {
 public:
  static constexpr size_t kWordsMax = 64;
  SmallMessage(const capnp::ReaderOptions& options, const std::byte* from, size_t words)
      : MessageReader(options), words_(words) {
    DTF_CHECK(words <= kWordsMax);
    std::memcpy(segment_, from, words * sizeof(word));
  }
  kj::ArrayPtr<const word> getSegment(kj::uint id) override {
    if (id > 0) return nullptr;
    return kj::arrayPtr(segment_, words_);
  }

 private:
  const size_t words_;
  word segment_[kWordsMax];
};

// Returns the bytes to skip at the start of a page-aligned buffer so that the first large segment,
// which holds tensors by reference, begins on a page.
size_t alignmentShift(std::span<const uint32_t> segment_words) {
  size_t before = 0;
  for (const uint32_t words : segment_words) {
    if (words * sizeof(word) >= kMemoryPageBytes)
      return (kMemoryPageBytes - before % kMemoryPageBytes) % kMemoryPageBytes;
    before += words * sizeof(word);
  }
  return 0;
}

// Sets capnp's guard against messages that cost their reader more than their bytes justify (a list
// of nothing has as many elements as it claims): eight times the message, far above the needs of
// dtf's readers, plus a little for the smallest ones.
capnp::ReaderOptions guarded(capnp::ReaderOptions options, size_t body_bytes) {
  constexpr uint64_t kReadingsMax = 8;
  constexpr uint64_t kWordsAlways = 1024;
  options.traversalLimitInWords = std::min(
      options.traversalLimitInWords, kReadingsMax * (body_bytes / sizeof(word)) + kWordsAlways);
  return options;
}

std::string tooManySegments(uint64_t segments, uint32_t allowed) {
  return "the peer sent a message of " + std::to_string(segments) + " segments, allowed are " +
         std::to_string(allowed);
}

// Leaves only the message's segments of a checked frame.
void leaveMessage(std::vector<uint32_t>& segment_words) {
  segment_words.pop_back();
  while (segment_words.size() > 1 && segment_words.back() == 0) segment_words.pop_back();
}

// Returns a hint: a task with keys replies with an alert to a peer without keys.
std::string keysHint(std::span<const std::byte> bytes) {
  return describeBytes(bytes) == "a TLS alert" ? ": it has keys, and this side has none" : "";
}

}  // namespace

FrameReader::FrameReader(std::shared_ptr<FrameLink> link, const Limits& limits,
                         std::shared_ptr<BufferPool> pool)
    : link_(std::move(link)),
      pool_(pool != nullptr ? std::move(pool) : BufferPool::create(0)),
      input_(new std::byte[kInputBytes]),
      checks_(link_->tls == nullptr ? Checks::kUnknown : Checks::kNone) {
  setLimits(limits);
}

void FrameReader::setLimits(const Limits& limits) {
  DTF_CHECK(limits.bytes_max >= sizeof(word) && limits.segments_max > 0);
  limits_ = limits;
  limits_.segments_max = std::min(limits.segments_max, kSegmentsMax);
}

FrameReader::Next FrameReader::take(const capnp::ReaderOptions& options,
                                    kj::Own<capnp::MessageReader>& message) {
  if (failure_) return Next::kFailed;
  if (body_) return body_->isWhole() ? takeBody(options, message) : endOfInput();
  if (!readHeader(header_)) return failure_ ? Next::kFailed : endOfInput();
  first_frame_ = false;
  if (header_.body_bytes < limits_.pooled_from_bytes &&
      header_.table_bytes + header_.wireBytes() <= available())
    return takeSmall(header_, options, message);
  if (!startBody(std::move(header_))) return Next::kFailed;
  return body_->isWhole() ? takeBody(options, message) : endOfInput();
}

// Allocates nothing for a peer before its header has passed the limits.
bool FrameReader::readHeader(Header& header) {
  if (available() < sizeof(uint32_t) * 2) return false;
  const std::byte* at = input_.get() + begin_;
  const uint64_t segments = uint64_t{load32(at)} + 1;
  if (!isGoodCount(segments)) return false;
  header.table_bytes = (segments / 2 + 1) * sizeof(word);
  if (available() < header.table_bytes) return false;
  bool is_checked = false;
  if (!learnChecks(at, static_cast<uint32_t>(segments), is_checked)) return false;
  uint64_t words = 0;
  header.segment_words.resize(segments);
  for (uint64_t i = 0; i < segments; ++i)
    words += header.segment_words[i] = load32(at + sizeof(uint32_t) * (i + 1));
  if (is_checked) {
    words -= kChecksumBytes / sizeof(word);
    leaveMessage(header.segment_words);
  }
  header.checksum_bytes = is_checked ? kChecksumBytes : 0;
  if (header.segment_words.size() > limits_.segments_max) {
    fail(kj::Exception::Type::FAILED,
         tooManySegments(header.segment_words.size(), limits_.segments_max));
    return false;
  }
  if (words > limits_.bytes_max / sizeof(word)) {
    fail(kj::Exception::Type::FAILED,
         "the peer announced a message of " + std::to_string(words * sizeof(word)) +
             " bytes, allowed are " + std::to_string(limits_.bytes_max));
    return false;
  }
  header.body_bytes = words * sizeof(word);
  return true;
}

bool FrameReader::isGoodCount(uint64_t segments) {
  const uint32_t beside = checks_ == Checks::kNone ? 0 : kCheckSegmentsMax;
  const bool is_too_many = segments > uint64_t{limits_.segments_max} + beside;
  const bool is_damaged = checks_ == Checks::kSent
                              ? is_too_many || !isCheckedCount(segments)
                              : checks_ == Checks::kUnknown && isTurnedCount(segments);
  if (is_damaged) {
    damaged(damagedHeaderText());
  } else if (is_too_many) {
    const std::span<const std::byte> came{input_.get() + begin_, available()};
    fail(kj::Exception::Type::FAILED,
         first_frame_
             ? "the peer sent " + describeBytes(came) + ", not a dtf message" + keysHint(came)
             : tooManySegments(segments, limits_.segments_max));
  }
  return !failure_;
}

// Decides by the first frame whether the peer sends checksums. Returns false if the connection has
// failed, or if the frame's first word has not arrived.
bool FrameReader::learnChecks(const std::byte* table, uint32_t segments, bool& is_checked) {
  if (link_->tls != nullptr) return true;
  is_checked = isCheckedTable(table, segments);
  bool is_damaged = is_checked != (checks_ == Checks::kSent);
  if (checks_ == Checks::kUnknown) {
    const uint32_t words = load32(table + sizeof(uint32_t));
    const bool needs_word =
        !is_checked && segments == 1 && words > 0 && words <= limits_.bytes_max / sizeof(word);
    if (needs_word && available() < 2 * sizeof(word)) return false;
    const uint64_t first_word = needs_word ? load64(table + sizeof(word)) : 0;
    is_damaged = !is_checked && isTurnedTable(table, segments, first_word);
    checks_ = is_checked ? Checks::kSent : Checks::kNone;
  }
  if (is_damaged) damaged(damagedHeaderText());
  return !is_damaged;
}

FrameReader::Next FrameReader::takeSmall(const Header& header, const capnp::ReaderOptions& options,
                                         kj::Own<capnp::MessageReader>& message) {
  DTF_CHECK(header.table_bytes + header.wireBytes() <= available());
  const std::byte* frame = input_.get() + begin_;
  const std::byte* body = frame + header.table_bytes;
  if (header.checksum_bytes > 0) {
    const size_t checked = header.table_bytes + header.body_bytes;
    const uint64_t received = checksumOf({reinterpret_cast<const char*>(frame), checked});
    const uint64_t sent = load64(frame + checked);
    if (received != sent) return damaged(damagedMessageText(header.body_bytes, received, sent));
  }
  const size_t size = header.body_bytes / sizeof(word);
  if (header.segment_words.size() == 1 && size <= SmallMessage::kWordsMax) {
    message = kj::heap<SmallMessage>(guarded(options, header.body_bytes), body, size);
    consume(header.table_bytes + header.wireBytes());
    return Next::kMessage;
  }
  auto words = kj::heapArray<word>(size);
  std::memcpy(words.begin(), body, header.body_bytes);
  consume(header.table_bytes + header.wireBytes());
  message = kj::heap<ReceivedMessage>(guarded(options, header.body_bytes), kj::mv(words),
                                      header.segment_words);
  return Next::kMessage;
}

bool FrameReader::startBody(Header header) {
  DTF_CHECK(!body_ && header.body_bytes <= limits_.bytes_max);
  Body body;
  if (header.body_bytes >= limits_.pooled_from_bytes) {
    const size_t shift = alignmentShift(header.segment_words);
    auto buffer = pool_->take(header.wireBytes() + shift);
    if (buffer == nullptr) {
      fail(kj::Exception::Type::FAILED, pool_->whyNull(header.body_bytes));
      return false;
    }
    std::byte* start = buffer.get() + shift;
    body.memory = std::shared_ptr<std::byte>(std::move(buffer), start);
    std::erase_if(live_, [](const auto& entry) { return entry.second.memory.expired(); });
    live_[start] = Live{body.memory, header.body_bytes};
  } else {
    std::shared_ptr<word[]> words(new word[header.wireBytes() / sizeof(word)]);
    auto* start = reinterpret_cast<std::byte*>(words.get());
    body.memory = std::shared_ptr<std::byte>(std::move(words), start);
  }
  if (header.checksum_bytes > 0) {
    if (!hash_) hash_.emplace();
    hash_->reset();
    hash_->update(input_.get() + begin_, header.table_bytes);
  }
  consume(header.table_bytes);
  body.filled = std::min(available(), header.wireBytes());
  std::memcpy(body.memory.get(), input_.get() + begin_, body.filled);
  consume(body.filled);
  body.header = std::move(header);
  body_ = std::move(body);
  hashFilled();
  return true;
}

// Hashes the received bytes while they are in the cache.
void FrameReader::hashFilled() {
  const size_t end = std::min(body_->filled, body_->header.body_bytes);
  if (body_->header.checksum_bytes == 0 || end == body_->hashed) return;
  hash_->update(body_->memory.get() + body_->hashed, end - body_->hashed);
  body_->hashed = end;
}

FrameReader::Next FrameReader::takeBody(const capnp::ReaderOptions& options,
                                        kj::Own<capnp::MessageReader>& message) {
  DTF_CHECK(body_ && body_->isWhole());
  Body body = *std::exchange(body_, std::nullopt);
  if (body.header.checksum_bytes > 0) {
    DTF_CHECK(body.hashed == body.header.body_bytes);
    const uint64_t received = hash_->value();
    const uint64_t sent = load64(body.memory.get() + body.header.body_bytes);
    if (received != sent)
      return damaged(damagedMessageText(body.header.body_bytes, received, sent));
  }
  message = kj::heap<ReceivedMessage>(guarded(options, body.header.body_bytes),
                                      std::move(body.memory), body.header.segment_words);
  return Next::kMessage;
}

FrameReader::Next FrameReader::endOfInput() {
  if (read_error_) {
    if (link_->tls != nullptr && !link_->tls->failure().empty())
      return fail(kj::Exception::Type::DISCONNECTED, "the peer: " + link_->tls->failure());
    failure_.emplace(toKj(read_error_, "read"));
    return Next::kFailed;
  }
  if (!at_end_) return Next::kNeedMore;
  if (!body_ && available() == 0) return Next::kEnd;
  return fail(kj::Exception::Type::DISCONNECTED, "the connection ended in the middle of a message");
}

FrameReader::Next FrameReader::fail(kj::Exception::Type type, std::string reason) {
  DTF_CHECK(!failure_);  // the first failure is the reason
  failure_.emplace(type, __FILE__, __LINE__, kj::heapString(reason.data(), reason.size()));
  return Next::kFailed;
}

// Reported as a broken connection, so that the link reconnects and resends the message.
FrameReader::Next FrameReader::damaged(std::string reason) {
  damage_ = reason;
  return fail(kj::Exception::Type::DISCONNECTED, std::move(reason));
}

std::string FrameReader::violation() const {
  if (!failure_ || failure_->getType() != kj::Exception::Type::FAILED) return {};
  return failure_->getDescription().cStr();
}

void FrameReader::consume(size_t bytes) {
  DTF_CHECK(!reading_ || bytes == 0);  // Asio holds a pointer into input_, which must not move
  DTF_CHECK(bytes <= available());
  begin_ += bytes;
  if (begin_ == end_) begin_ = end_ = 0;
}

std::shared_ptr<const void> FrameReader::pin(const void* data) {
  const auto* at = static_cast<const std::byte*>(data);
  auto next = live_.upper_bound(at);
  if (next == live_.begin()) return nullptr;
  const auto& [start, live] = *std::prev(next);
  return at < start + live.bytes ? live.memory.lock() : nullptr;
}

}  // namespace dtf::net
