#include "common/net/frame_check.h"

#include <fmt/format.h>

#include <string_view>

#include "common/base/checksum.h"

namespace dtf::net {

namespace {

constexpr uint32_t kChecksumWords = kChecksumBytes / 8;
constexpr const char* kWhatToDo =
    "; check the network cards, the cables and the memory of both hosts";

size_t paddingAt(uint32_t segments) {
  return sizeof(uint32_t) * (size_t{segments} + 1);
}

}  // namespace

uint32_t tableCheck(const std::byte* table, uint32_t segments) {
  const auto hash = static_cast<uint32_t>(
      checksumOf({reinterpret_cast<const char*>(table), paddingAt(segments)}));
  return hash == 0 ? 1 : hash;
}

bool isCheckedTable(const std::byte* table, uint32_t segments) {
  return isCheckedCount(segments) &&
         load32(table + sizeof(uint32_t) * segments) == kChecksumWords &&
         load32(table + paddingAt(segments)) == tableCheck(table, segments);
}

bool isTurnedTable(const std::byte* table, uint32_t segments, uint64_t first_word) {
  if (segments > 1) return segments % 2 == 0 && load32(table + paddingAt(segments)) != 0;
  // A table with a damaged count ends too early: its rest is read as the first word.
  const uint32_t sent[] = {1, load32(table + sizeof(uint32_t)), static_cast<uint32_t>(first_word),
                           static_cast<uint32_t>(first_word >> 32)};
  return isCheckedTable(reinterpret_cast<const std::byte*>(sent), 2);
}

std::string damagedHeaderText() {
  return std::string("the header of a message was damaged on the way") + kWhatToDo;
}

std::string damagedMessageText(uint64_t bytes, uint64_t received, uint64_t sent) {
  return fmt::format("a message of {} bytes was damaged on the way (checksum {}, sent with {}){}",
                     bytes, hexOf(received), hexOf(sent), kWhatToDo);
}

}  // namespace dtf::net
