#pragma once

// The arenas of this process that the card of one worker reads and writes: see PsData.openRemote in
// common/wire/ps.capnp.

#include <cstdint>
#include <memory>
#include <optional>

#include "common/arena/gradient_layout.h"
#include "common/net/channels/remote_memory.h"
#include "common/tensor/buffer.h"
#include "common/wire/ps.capnp.h"

namespace dtf::host {

// The end of a channel that is read and written, for one bulk connection. The channel ends with it:
// nothing that the worker began on it reaches this process's memory later.
// Owns: the channel, and the arena for the worker's gradients.
// Threads: the connection's loop only.
// Blocks: while memory is registered, once for each arena.
class RemoteLoan {
 public:
  // `elements`: of a gradient, at least 1.
  // Errors: kUnavailable if memory can't be registered.
  RemoteLoan(net::Loop& loop, std::shared_ptr<net::RemoteDomain> domain, uint64_t elements);

  // Sets the reply to openRemote(): the channel's address, and the arena into which the worker puts
  // its gradients, one at a time.
  void describe(schema::PsData::OpenRemoteResults::Builder reply) const;
  // Returns the gradient in it. The worker overwrites it after the reply to its exchange: it is
  // marked as lent.
  // Errors: kBadData for another key.
  arena::Gradient gradient(uint64_t key) const;

  // Registers parameters, for takeNew().
  // Errors: kUnavailable if the memory can't be registered.
  void offer(const std::shared_ptr<const SharedMemory>& memory);
  // Returns the arena of the last offer(), once.
  std::optional<net::RemoteArena> takeNew() { return std::exchange(new_, std::nullopt); }

 private:
  const std::shared_ptr<net::RemoteDomain> domain_;
  const uint64_t elements_;
  const std::shared_ptr<Buffer> gradient_;  // outlives the loan while the shard reads it
  const std::unique_ptr<net::RemoteChannel> channel_;
  net::RemoteArena gradient_arena_;
  std::optional<net::RemoteArena> new_;
};

}  // namespace dtf::host
