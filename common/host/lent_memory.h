#pragma once

// The arenas that this process and a worker on the same host read in each other's memory: see
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
#include "common/host/remote_loan.h"
#include "common/net/memory_channel.h"
#include "common/shard/shard.h"
#include "common/wire/exchange_board.h"

namespace dtf::host {

// The arenas lent over one bulk connection, for all sessions on it.
// Owns: the door and the channel, the mappings of the worker's gradients, and the parameters that
// the worker may be reading. When the connection ends, this process can't learn how long the worker
// goes on reading them, so the destructor retires them: nothing is written to them again.
// Borrows: `shard` (must outlive this); the first lend() makes it move its parameters to shared
// memory.
// Threads: the connection's loop only.
// Blocks: only in accept() and page(), while the kernel maps the worker's memory.
class LentMemory {
 public:
  // `worker`: for the log.
  LentMemory(shard::Shard& shard, TaskId worker) : shard_(shard), worker_(worker) {}
  ~LentMemory();
  LentMemory(const LentMemory&) = delete;
  LentMemory& operator=(const LentMemory&) = delete;

  // Opens a door for the worker, in place of an earlier one.
  // Errors: kUnavailable with the kernel's reason.
  const net::MemoryDoor& openDoor();
  // Closes the door, and receives from its visitor the gradient arenas with these keys, each of
  // `elements` values.
  // Errors: kUnavailable if no door is open, or it had no visitor; kBadData if an arena is missing
  // or of the wrong size, or for more than two keys.
  void accept(capnp::List<uint64_t>::Reader keys, uint64_t elements);

  // After accept(): receives the worker's page with this key, of `bytes`.
  // Errors: kBadData if it is missing or has another size; kUnavailable with the kernel's reason.
  std::shared_ptr<const MappedMemory> page(uint64_t key, size_t bytes);
  // After accept(): gives the worker a page.
  // Errors: kUnavailable if the worker is gone.
  void givePage(const SharedMemory& page);

  // Opens the channel for the worker's card: lend() and gradient() use it from here on.
  // Errors: kBadData if there is one already; kUnavailable if memory can't be registered.
  RemoteLoan& openRemote(net::Loop& loop, std::shared_ptr<net::RemoteDomain> domain,
                         uint64_t elements);
  // Returns the arena that the last lend() named for the first time to the worker's card, once.
  std::optional<net::RemoteArena> takeNew();

  // Returns the gradient that the worker has written to the arena with this key. The worker
  // overwrites it after the reply to its exchange: it is marked as lent.
  // Errors: kBadData if accept() or openRemote() know no such arena of `elements` values.
  arena::Gradient gradient(uint64_t key, uint64_t elements) const;

  // Releases all lent parameters but the arena with this key: the worker reads only that one still.
  void keepOnly(uint64_t key);
  // Returns the key that a reply may contain in place of the parameters; 0: they must be sent.
  // Errors: kUnavailable if they can't be registered for RDMA.
  uint64_t lend(const std::shared_ptr<const arena::ParameterVersion>& parameters);
  // Sets the parameters of a reply in shared memory, with the keys of freed arenas, or `by_call`:
  // the worker reads no keys of such a reply, so they stay for the next one.
  void lend(const std::shared_ptr<const arena::ParameterVersion>& parameters,
            wire::BoardReply& reply);
  // Returns the keys of lent arenas that have been freed since; each key once, at most `most` in
  // one call.
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
  std::unique_ptr<RemoteLoan> remote_;                                 // null: without RDMA
};

}  // namespace dtf::host
