#include "common/net/preamble.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <string_view>

namespace dtf::net {

namespace {

constexpr std::string_view kMagic = "DTFRPC";
constexpr size_t kVersionAt = 6;
constexpr size_t kKindAt = 8;

bool startsWith(std::span<const std::byte> bytes, std::string_view text) {
  return bytes.size() >= text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}

uint16_t versionOf(std::span<const std::byte> bytes) {
  return static_cast<uint16_t>(std::to_integer<unsigned>(bytes[kVersionAt]) |
                               std::to_integer<unsigned>(bytes[kVersionAt + 1]) << 8);
}

// ContentType (handshake 22, alert 21), protocol version 3.x: RFC 8446, section 5.1.
bool looksLikeRecord(std::span<const std::byte> bytes, std::byte type) {
  return bytes.size() >= 3 && bytes[0] == type && bytes[1] == std::byte{0x03} &&
         bytes[2] <= std::byte{0x04};
}

bool looksLikeHttpRequest(std::span<const std::byte> bytes) {
  constexpr std::string_view kMethods[] = {"GET ",    "POST ",       "HEAD ",    "PUT ",
                                           "DELETE ", "CONNECT ",    "OPTIONS ", "PATCH ",
                                           "TRACE ",  "PRI * HTTP/2"};
  return std::ranges::any_of(kMethods, [&](auto method) { return startsWith(bytes, method); });
}

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes.first(std::min<size_t>(bytes.size(), 8)))
    text += fmt::format("{}{:02x}", text.empty() ? "" : " ", std::to_integer<unsigned>(byte));
  return text;
}

}  // namespace

std::array<std::byte, kPreambleBytes> makePreamble(ConnectionKind kind) {
  std::array<std::byte, kPreambleBytes> bytes{};
  std::memcpy(bytes.data(), kMagic.data(), kMagic.size());
  bytes[kVersionAt] = std::byte{kProtocolVersion & 0xff};
  bytes[kVersionAt + 1] = std::byte{kProtocolVersion >> 8};
  bytes[kKindAt] = static_cast<std::byte>(kind);
  return bytes;
}

std::optional<ConnectionKind> parsePreamble(std::span<const std::byte> bytes) {
  for (const ConnectionKind kind : {ConnectionKind::kControl, ConnectionKind::kBulk})
    if (std::ranges::equal(bytes, makePreamble(kind))) return kind;
  return std::nullopt;
}

bool looksLikeTls(std::span<const std::byte> bytes) {
  return looksLikeRecord(bytes, std::byte{22});
}

std::string describeBytes(std::span<const std::byte> bytes) {
  if (bytes.empty()) return "nothing";
  if (startsWith(bytes, kMagic) && bytes.size() > kVersionAt + 1) {
    const uint16_t version = versionOf(bytes);
    if (version != kProtocolVersion)
      return fmt::format("dtf protocol version {}, this is {}", version, kProtocolVersion);
    if (bytes.size() < kPreambleBytes) return "a truncated dtf preamble";
    return fmt::format("a damaged dtf preamble ({} ...)", hex(bytes.subspan(kKindAt)));
  }
  if (looksLikeHttpRequest(bytes)) return "an HTTP request";
  if (startsWith(bytes, "HTTP/")) return "an HTTP response";
  if (startsWith(bytes, "SSH-")) return "an SSH greeting";
  if (looksLikeTls(bytes)) return "a TLS handshake";
  if (looksLikeRecord(bytes, std::byte{21})) return "a TLS alert";
  return fmt::format("random bytes ({}{})", hex(bytes), bytes.size() > 8 ? " ..." : "");
}

}  // namespace dtf::net
