#include "launcher/ssh/frames.h"

#include <array>

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf::launcher {

namespace {

constexpr size_t kNumberBytes = 4;
constexpr size_t kOffsetBytes = 8;
constexpr size_t kHeaderBytes = kNumberBytes + 1;

void appendNumber(std::string& text, size_t number, size_t bytes = kNumberBytes) {
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>(number >> (8 * i) & 0xFF);
}

size_t numberAt(std::string_view text, size_t at, size_t bytes = kNumberBytes) {
  size_t number = 0;
  for (size_t i = 0; i < bytes; ++i)
    number |= size_t{static_cast<unsigned char>(text[at + i])} << (8 * i);
  return number;
}

std::string frame(FrameKind kind, std::string_view head, std::string_view payload) {
  const size_t length = 1 + head.size() + payload.size();
  DTF_CHECK_MSG(length <= kFrameBytesMax, std::to_string(length));
  std::string text;
  text.reserve(kNumberBytes + length);
  appendNumber(text, length);
  text += static_cast<char>(kind);
  text += head;
  text += payload;
  return text;
}

bool isKind(unsigned char kind) {
  return kind >= static_cast<unsigned char>(FrameKind::kMessage) &&
         kind <= static_cast<unsigned char>(FrameKind::kCopy);
}

}  // namespace

std::string messageFrame(std::string_view json) {
  return frame(FrameKind::kMessage, "", json);
}

std::string copyFrame(std::string_view bytes) {
  return frame(FrameKind::kCopy, "", bytes);
}

std::string bytesFrame(FrameKind kind, size_t task, std::string_view bytes) {
  DTF_CHECK(kind == FrameKind::kOutput || kind == FrameKind::kNotices);
  std::string head;
  appendNumber(head, task);
  return frame(kind, head, bytes);
}

TaskBytes readTaskBytes(std::string_view payload) {
  if (payload.size() < kNumberBytes)
    throw Error(ErrorCode::kBadData, "a frame of output without a task");
  return {numberAt(payload, 0), payload.substr(kNumberBytes)};
}

std::string fileFrame(const FilePiece& piece) {
  std::string head;
  appendNumber(head, piece.offset, kOffsetBytes);
  appendNumber(head, piece.name.size());
  return frame(FrameKind::kFile, head + piece.name, piece.bytes);
}

FilePiece readFilePiece(std::string_view payload) {
  constexpr size_t kNameAt = kOffsetBytes + kNumberBytes;
  const size_t name_bytes = payload.size() < kNameAt ? 0 : numberAt(payload, kOffsetBytes);
  if (payload.size() < kNameAt || name_bytes > payload.size() - kNameAt)
    throw Error(ErrorCode::kBadData, "a frame of a file without a name");
  return {std::string(payload.substr(kNameAt, name_bytes)), numberAt(payload, 0, kOffsetBytes),
          std::string(payload.substr(kNameAt + name_bytes))};
}

void FrameReader::feed(std::string_view bytes) {
  partial_ += bytes;
  while (awaits_greeting_ ? takeGreeting() : takeFrame()) {
  }
}

bool FrameReader::takeGreeting() {
  const size_t end = partial_.find('\n');
  if (end == std::string::npos && partial_.size() <= kGreetingBytesMax) return false;
  if (end > kGreetingBytesMax)  // or there is none
    throw Error(ErrorCode::kBadData, "a first line of more than 256 bytes");
  const std::string greeting = partial_.substr(0, end);
  partial_.erase(0, end + 1);
  awaits_greeting_ = false;
  on_frame_(FrameKind::kGreeting, greeting);
  return true;
}

bool FrameReader::takeFrame() {
  if (partial_.size() < kHeaderBytes) return false;
  const size_t length = numberAt(partial_, 0);
  const auto kind = static_cast<unsigned char>(partial_[kNumberBytes]);
  const bool is_report = is_launchers_ && kind == static_cast<unsigned char>(FrameKind::kMessage);
  if (length < 1 || length > (is_report ? kReportBytesMax : kFrameBytesMax) || !isKind(kind))
    throw Error(ErrorCode::kBadData, "a frame of " + std::to_string(length) + " bytes and kind " +
                                         std::to_string(kind) + ": this is not dtf's protocol");
  if (partial_.size() < kNumberBytes + length) return false;
  const std::string payload = partial_.substr(kHeaderBytes, length - 1);
  partial_.erase(0, kNumberBytes + length);
  on_frame_(static_cast<FrameKind>(kind), payload);
  return true;
}

}  // namespace dtf::launcher
