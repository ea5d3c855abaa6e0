#include "common/summary/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace dtf::summary {

namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // 0x1edc6f41, bits reversed

constexpr std::array<uint32_t, 256> makeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < table.size(); ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    table[byte] = crc;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kTable = makeTable();

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t crc32cByInstruction(std::string_view bytes) {
  uint64_t crc = 0xffffffff;
  const char* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= sizeof(uint64_t); at += sizeof(uint64_t), left -= sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    crc = _mm_crc32_u64(crc, word);
  }
  auto narrow = static_cast<uint32_t>(crc);
  for (; left > 0; ++at, --left) narrow = _mm_crc32_u8(narrow, static_cast<uint8_t>(*at));
  return ~narrow;
}
#endif

}  // namespace

uint32_t crc32cByTable(std::string_view bytes) {
  uint32_t crc = 0xffffffff;
  for (const char byte : bytes)
    crc = kTable[(crc ^ static_cast<uint8_t>(byte)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

uint32_t crc32c(std::string_view bytes) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return crc32cByInstruction(bytes);
#endif
  return crc32cByTable(bytes);
}

uint32_t maskedCrc32c(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8;
}

}  // namespace dtf::summary
