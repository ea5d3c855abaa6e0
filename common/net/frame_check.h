#pragma once

// Inside common/net: the checksums of a frame, on a connection without TLS.
//   u32 segments - 1 | u32 words of each segment | u32 check of the table | segments | u64 checksum
// The frame is an ordinary one of Cap'n Proto. Its last segment, to which no pointer leads, is the
// checksum of all bytes before it; empty segments before that fill up the number of segments, so
// that the table has a padding word, which holds the check of the table. A version without
// checksums ignores both.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace dtf::net {

inline constexpr size_t kChecksumBytes = 8;
// Segments that a checked frame has beside its message's.
inline constexpr uint32_t kCheckSegmentsMax = 6;
// Bytes of a large message that are hashed at a time: they stay in the cache for the copy from or
// to the kernel.
inline constexpr size_t kHashedBytesMax = 256 << 10;

// The wire is little-endian, as is every machine we build for.
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

// Whether a checked frame may have so many segments: the number less one is odd and has an odd
// number of one bits. A single turned bit changes that, so a reader does not wait for the table of
// a number that was not sent.
constexpr bool isCheckedCount(uint64_t segments) {
  return segments % 2 == 0 && std::popcount(segments - 1) % 2 == 1;
}

// The segments of the checked frame of a message of so many.
constexpr uint32_t checkedCount(uint32_t segments) {
  do ++segments;
  while (!isCheckedCount(segments));
  return segments;
}

// The padding word of the `table` of a checked frame, whose number of segments is even. Never 0, as
// the padding of frames without checksums is.
uint32_t tableCheck(const std::byte* table, uint32_t segments);

// Whether a whole table is that of a checked frame, as it was sent.
bool isCheckedTable(const std::byte* table, uint32_t segments);

// Whether the first frame of a connection, which is not checked, is a checked one with one turned
// bit, judged by its number of segments: an unchecked one has one segment there.
constexpr bool isTurnedCount(uint64_t segments) {
  return segments > 2 && std::popcount((segments - 1) ^ 1) == 1;
}
// The same, by its whole table and, where it has one segment, the first word of that; 0 where there
// is none.
bool isTurnedTable(const std::byte* table, uint32_t segments, uint64_t first_word);

// The reasons for the end of a connection. `bytes`: the message's.
std::string damagedHeaderText();
std::string damagedMessageText(uint64_t bytes, uint64_t received, uint64_t sent);

}  // namespace dtf::net
