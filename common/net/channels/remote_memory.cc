#include "common/net/channels/remote_memory.h"

#include <fmt/format.h>

#include <algorithm>
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

// Each lane has a line: "#   lane[0]:  1:tcp/eth0.0 md[1]  -> md[1]/tcp/sysdev[255] am wireup".
std::string transportsIn(std::string_view endpoint_info) {
  std::vector<std::string_view> found;
  for (size_t lane = endpoint_info.find("lane["); lane != std::string_view::npos;
       lane = endpoint_info.find("lane[", lane + 1)) {
    const std::string_view line = endpoint_info.substr(lane, endpoint_info.find('\n', lane) - lane);
    const size_t slash = line.find('/');
    const size_t end = line.find(' ', slash);
    const size_t colon = line.rfind(':', slash);
    if (slash == std::string_view::npos || end == std::string_view::npos ||
        colon == std::string_view::npos)
      continue;
    std::string_view name = line.substr(colon + 1, end - colon - 1);
    name = name.substr(0, name.rfind('.'));  // the number of its path
    if (std::ranges::find(found, name) == found.end()) found.push_back(name);
  }
  return fmt::format("{}", fmt::join(found, ", "));
}

// The names of UCX for InfiniBand and RoCE: rc_verbs, rc_mlx5, dc_mlx5, ud_verbs, ud_mlx5.
bool areCards(std::string_view transports) {
  if (transports.empty()) return false;
  for (size_t at = 0; at != std::string_view::npos;) {
    const std::string_view name = transports.substr(at);
    if (!name.starts_with("rc_") && !name.starts_with("dc_") && !name.starts_with("ud_"))
      return false;
    const size_t comma = transports.find(", ", at);
    at = comma == std::string_view::npos ? comma : comma + 2;
  }
  return true;
}

// Builds without the headers of UCX: see meson's option ucx.
#ifndef DTF_HAS_UCX

std::shared_ptr<RemoteDomain> RemoteDomain::open() {
  throw Error(
      ErrorCode::kBadConfig,
      "'transport: rdma' needs UCX, and this program was built without it: build it where "
      "libucx-dev is installed (-Ducx=enabled), or remove 'transport' from the cluster file");
}

std::unique_ptr<RemoteChannel> RemoteChannel::open(Loop& /*loop*/,
                                                   std::shared_ptr<RemoteDomain> /*domain*/) {
  throw Error(ErrorCode::kBadConfig, "this program was built without UCX");
}

#endif

}  // namespace dtf::net
