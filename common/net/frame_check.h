#pragma once

// Internal to common/net: the checksums of a frame, on a connection without TLS.
//   u32 segments - 1 | u32 words of each segment | u32 check of the table | segments | u64 checksum
// The frame is an ordinary frame of Cap'n Proto. Its last segment, to which no pointer leads, is
// the checksum of all bytes before it. Empty segments before that pad the number of segments, so
// that the table has a padding word, which holds the table's own check. A version without checksums
// ignores both.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace dtf::net {

inline constexpr size_t kChecksumBytes = 8;
// The segments of a checked frame in addition to its message's.
inline constexpr uint32_t kCheckSegmentsMax = 6;
// Bytes of a large message hashed at a time: they stay in the cache for the copy from or to the
// kernel.
inline constexpr size_t kHashedBytesMax = 256 << 10;

// The wire is little-endian, as are all supported machines.
inline uint32_t load32(const std::byte* at) {
  uint32_t value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

inline uint64_t load64(const std::byte* at) {
  uint64_t value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

// Returns whether a checked frame may have this number of segments: the number less one is odd and
// has an odd number of one bits. A single flipped bit violates that, so a reader does not wait for
// a table of the wrong size.
constexpr bool isCheckedCount(uint64_t segments) {
  return segments % 2 == 0 && std::popcount(segments - 1) % 2 == 1;
}

// Returns the number of segments in the checked frame of a message with `segments`.
constexpr uint32_t checkedCount(uint32_t segments) {
  do ++segments;
  while (!isCheckedCount(segments));
  return segments;
}

// Returns the padding word of a checked frame's `table`, whose number of segments is even. Never 0,
// unlike the padding of frames without checksums.
uint32_t tableCheck(const std::byte* table, uint32_t segments);

// Returns whether a complete table belongs to a checked frame, and is undamaged.
bool isCheckedTable(const std::byte* table, uint32_t segments);

// Returns whether the first frame of a connection, which should be unchecked, may be a checked
// frame with one flipped bit, by its number of segments: an unchecked one has one segment there.
constexpr bool isTurnedCount(uint64_t segments) {
  return segments > 2 && std::popcount((segments - 1) ^ 1) == 1;
}
// The same by its complete table and, if it has one segment, the first word of that; 0 if there is
// none.
bool isTurnedTable(const std::byte* table, uint32_t segments, uint64_t first_word);

// The reasons for the end of a connection. `bytes`: the size of the message.
std::string damagedHeaderText();
std::string damagedMessageText(uint64_t bytes, uint64_t received, uint64_t sent);

}  // namespace dtf::net
