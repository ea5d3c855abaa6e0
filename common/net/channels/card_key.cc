// The checks of bytes from a peer that UCX would trust.

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "common/net/channels/remote_memory.h"

namespace dtf::net {

// A card key begins with a map of the memory domains that it has a part for, and the type of the
// memory. Each part begins with its size. Later versions of UCX may append more.
std::string cardKeyFault(std::span<const std::byte> card_key) {
  constexpr size_t kHead = sizeof(uint64_t) + 1;
  if (card_key.size() < kHead || card_key.size() > kCardKeyBytesMax)
    return fmt::format("it has {} bytes, not {} to {}", card_key.size(), kHead, kCardKeyBytesMax);
  uint64_t map = 0;
  std::memcpy(&map, card_key.data(), sizeof map);
  if (card_key[sizeof map] != std::byte{0}) return "it is of memory that is no host's";
  std::span<const std::byte> rest = card_key.subspan(kHead);
  for (int part = std::popcount(map); part > 0; --part) {
    if (rest.empty() || rest.size() - 1 < static_cast<size_t>(rest[0]))
      return "it ends within a part";
    rest = rest.subspan(1 + static_cast<size_t>(rest[0]));
  }
  return {};
}

}  // namespace dtf::net
