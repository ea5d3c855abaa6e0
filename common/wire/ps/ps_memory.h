#pragma once

// The arenas that a worker reads in the memory of one ps: see PsData.shareMemory in ps.capnp.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "common/net/memory_channel.h"

namespace dtf::wire {

// More arenas than a ps with the most workers has in use.
inline constexpr size_t kArenasMappedMax = 4096;

// The mapped arenas of one ps.
// Owns: the channel, and the mappings of the arenas that the ps has not freed.
// Threads: loop-thread only; a mapping may be released on any thread.
// Blocks: only while the kernel maps an arena, once for each.
class PsMemory {
 public:
  // `arena_bytes_max`: the largest arena that the ps may give.
  PsMemory(net::MemoryChannel channel, size_t arena_bytes_max)
      : channel_(std::move(channel)), arena_bytes_max_(arena_bytes_max) {}

  net::MemoryChannel& channel() { return channel_; }

  // Returns the arena that a reply names, of at least `bytes`.
  // Errors: kBadData if the ps has not given it, has given too many, or it is smaller; kUnavailable
  // if this process can't map it.
  std::shared_ptr<const MappedMemory> find(uint64_t key, uint64_t bytes);
  // Releases arenas that the ps has freed; a reader of one keeps its mapping.
  template <class Keys>
  void forget(const Keys& keys) {
    for (const uint64_t key : keys) arenas_.erase(key);
  }

  size_t TEST_mappedCount() const { return arenas_.size(); }

 private:
  net::MemoryChannel channel_;
  const size_t arena_bytes_max_;
  std::map<uint64_t, std::shared_ptr<const MappedMemory>> arenas_;  // by key
};

}  // namespace dtf::wire
