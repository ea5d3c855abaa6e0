#pragma once

// What a worker reads in the memory of one ps: PsData.shareMemory in ps.capnp.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "common/net/memory_channel.h"

namespace dtf::wire {

// More arenas than a ps with the most workers has in use.
inline constexpr size_t kArenasMappedMax = 4096;

// Owns: the channel, and the mappings of the arenas that the ps still has.
// Threads: loop-thread only; a mapping may be released on any thread.
// Blocks: never, but while the kernel maps an arena, once.
class PsMemory {
 public:
  // `arena_bytes_max`: of one arena that the ps gives.
  PsMemory(net::MemoryChannel channel, size_t arena_bytes_max)
      : channel_(std::move(channel)), arena_bytes_max_(arena_bytes_max) {}

  net::MemoryChannel& channel() { return channel_; }

  // The arena that an answer names, of `bytes` at least.
  // Errors: kBadData when the ps has not given it, or too many, or it is smaller. kUnavailable
  // where this process can't have it.
  std::shared_ptr<const MappedMemory> find(uint64_t key, uint64_t bytes);
  // The ps doesn't have it any more. Whoever still reads it goes on.
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
