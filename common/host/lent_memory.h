#pragma once

// What a worker on this host reads in this process's memory, and this process in the worker's:
// PsData.shareMemory in common/wire/ps.capnp.

#include <capnp/list.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "common/arena/gradient_layout.h"
#include "common/arena/parameter_version.h"
#include "common/base/ids.h"
#include "common/net/memory_channel.h"
#include "common/shard/shard.h"

namespace dtf::host {

// Of one bulk connection, for all sessions on it.
// Owns: the door and the channel, mappings of the worker's gradients, and the parameters that the
// worker may be reading: when the connection has ended nobody can tell until when it does, so these
// arenas are not written again.
// Borrows: `shard`, whose parameters move to where they can be lent
// when they are asked for.
// Threads: the connection's loop only.
// Blocks: never, but while the kernel maps the worker's arenas, once.
class LentMemory {
 public:
  // `worker`: for the log.
  LentMemory(shard::Shard& shard, TaskId worker) : shard_(shard), worker_(worker) {}
  ~LentMemory();
  LentMemory(const LentMemory&) = delete;
  LentMemory& operator=(const LentMemory&) = delete;

  // Errors: kUnavailable with what the kernel refuses.
  const net::MemoryDoor& openDoor();
  // Whoever came through the door has given gradient arenas with these keys, of `elements`.
  // Errors: kUnavailable when nobody came, or no door is open; kBadData when one is missing,
  // smaller or larger, or too many are named.
  void accept(capnp::List<uint64_t>::Reader keys, uint64_t elements);

  // After accept(): the page with this key that the worker has given, of `bytes` at most.
  // Errors: kBadData when it is missing; kUnavailable with the kernel's reason.
  std::shared_ptr<const MappedMemory> page(uint64_t key, size_t bytes);
  // After accept(): gives the worker a page.
  // Errors: kUnavailable when the worker is gone.
  void givePage(const SharedMemory& page);

  // The gradient that the worker has written there. It stays as it is until the worker is answered;
  // whoever reads it for longer (a message to another ps) needs a copy.
  // Errors: kBadData for a key that is none of those.
  arena::Gradient gradient(uint64_t key, uint64_t elements) const;

  // The worker reads none of what it was lent before, but for the arena of that key.
  void keepOnly(uint64_t key);
  // The key by which the answer may name the parameters; 0: they have to travel.
  uint64_t lend(const std::shared_ptr<const arena::ParameterVersion>& parameters);
  // Of arenas that were lent and are no more, each once; `most` of them now.
  std::vector<uint64_t> takeGone(size_t most = SIZE_MAX);

 private:
  bool give(const std::shared_ptr<const SharedMemory>& memory);

  shard::Shard& shard_;
  const TaskId worker_;
  std::optional<net::MemoryDoor> door_;
  std::optional<net::MemoryChannel> channel_;
  std::map<uint64_t, std::shared_ptr<const MappedMemory>> gradients_;  // by key
  std::map<uint64_t, std::weak_ptr<const SharedMemory>> given_;        // likewise
  std::vector<std::shared_ptr<const arena::ParameterVersion>> lent_;   // each once
};

}  // namespace dtf::host
