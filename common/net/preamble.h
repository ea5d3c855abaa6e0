#pragma once

// The first 16 bytes of every connection, sent by the connecting side. They distinguish a dtf peer
// from any other client before Cap'n Proto sees a byte.
//   0..5 "DTFRPC"   6..7 protocol version, little-endian   8 kind of connection   9..15 zero

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace dtf::net {

inline constexpr uint16_t kProtocolVersion = 4;
inline constexpr size_t kPreambleBytes = 16;

// A peer has two connections, so that a ping never waits behind a gigabyte.
enum class ConnectionKind : uint8_t { kControl = 1, kBulk = 2 };

std::array<std::byte, kPreambleBytes> makePreamble(ConnectionKind kind);

// Returns nullopt if the bytes are not from a peer of this version; describeBytes() then describes
// them.
std::optional<ConnectionKind> parsePreamble(std::span<const std::byte> bytes);

// Returns whether the bytes begin a TLS handshake.
bool looksLikeTls(std::span<const std::byte> bytes);

// Describes the first bytes of a connection for a log line: "an HTTP request", "a TLS handshake",
// "a TLS alert", "dtf protocol version 7, this is 1", "nothing", "random bytes (17 03 ff ...)".
std::string describeBytes(std::span<const std::byte> bytes);

}  // namespace dtf::net
