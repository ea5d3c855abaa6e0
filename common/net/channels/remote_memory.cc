#include "common/net/channels/remote_memory.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "common/base/error.h"

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

// Builds without the headers of UCX: see meson's option ucx.
#ifndef DTF_HAS_UCX

std::shared_ptr<RemoteDomain> RemoteDomain::open() {
  throw Error(
      ErrorCode::kUnavailable,
      "'transport: rdma' needs UCX, and this program was built without it: build it where "
      "libucx-dev is installed (-Ducx=enabled), or remove 'transport' from the cluster file");
}

std::unique_ptr<RemoteChannel> RemoteChannel::open(Loop& /*loop*/,
                                                   std::shared_ptr<RemoteDomain> /*domain*/) {
  throw Error(ErrorCode::kUnavailable, "this program was built without UCX");
}

#endif

}  // namespace dtf::net
