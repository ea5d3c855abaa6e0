#include "common/wire/ps/ps_memory.h"

#include <fmt/format.h>

#include <utility>

#include "common/base/error.h"

namespace dtf::wire {

std::shared_ptr<const MappedMemory> PsMemory::find(uint64_t key, uint64_t bytes) {
  auto found = arenas_.find(key);
  while (found == arenas_.end()) {
    std::optional<net::GivenMemory> given = channel_.receive(arena_bytes_max_);
    if (!given)
      throw Error(ErrorCode::kBadData,
                  fmt::format("parameters in memory {:016x}, which was not shared", key));
    if (arenas_.size() >= kArenasMappedMax)
      throw Error(ErrorCode::kBadData,
                  fmt::format("parameters in more than {} arenas at once", kArenasMappedMax));
    const auto added = arenas_.insert_or_assign(given->key, std::move(given->memory)).first;
    if (added->first == key) found = added;
  }
  if (found->second->bytes() < bytes)
    throw Error(ErrorCode::kBadData, fmt::format("parameters of {} bytes in shared memory of {}",
                                                 bytes, found->second->bytes()));
  return found->second;
}

}  // namespace dtf::wire
