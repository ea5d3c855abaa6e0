#pragma once

// The arenas that a worker reads and writes in the memory of one ps by its network card: see
// PsData.openRemote in ps.capnp.

#include <kj/async.h>

#include <memory>
#include <string>
#include <utility>

#include "common/arena/gradient_buffer.h"
#include "common/net/channels/remote_memory.h"
#include "common/tensor/buffer.h"
#include "common/wire/ps.capnp.h"

namespace dtf::wire {

// The channel to one ps, for one connection: with the connection it ends, so nothing that was begun
// on an earlier one reaches the ps later.
// Owns: the channel.
// Threads: loop-thread only.
// Errors: of transfers, as promises: those of a broken connection. kUnavailable if memory can't be
// registered; kBadData for an arena that the ps has not lent, or that is too small.
class PsRemote {
 public:
  // Asks the ps for a channel, and connects to it. `peer`: for errors. `deadline`: of each
  // transfer.
  static kj::Promise<std::unique_ptr<PsRemote>> open(net::Loop& loop, schema::PsData::Client& data,
                                                     std::shared_ptr<net::RemoteDomain> domain,
                                                     const std::string& peer, Duration deadline);

  PsRemote(net::Loop& loop, std::shared_ptr<net::RemoteDomain> domain, std::string peer,
           Duration deadline);

  // Takes the reply of the ps.
  // Errors: kBadConfig if the ps has another version of UCX; else as RemoteChannel::connect().
  void connect(schema::PsData::OpenRemoteResults::Reader reply);

  // Writes the gradient into the ps's arena for it.
  kj::Promise<void> put(const arena::Gradient& gradient);
  // Returns the transports that UCX has chosen: RemoteChannel::transports().
  std::string transports() const { return channel_->transports(); }
  // Returns the key of that arena, for the exchange.
  uint64_t gradientKey() const { return gradient_key_; }

  // Learns the arena that a reply names for the first time.
  void learn(uint64_t key, schema::RemoteArena::Reader arena);
  // Reads `bytes` of parameters into `to`, which is made if it has another size.
  kj::Promise<void> get(uint64_t key, uint64_t bytes, std::shared_ptr<Buffer>& to);
  // Forgets arenas that the ps has freed.
  template <class Keys>
  void forget(const Keys& keys) {
    for (const uint64_t key : keys) channel_->forget(key);
  }

 private:
  kj::Promise<void> connected();
  net::RemoteWait wait(const char* doing) const { return {doing + peer_, deadline_}; }

  const std::shared_ptr<net::RemoteDomain> domain_;
  const std::string peer_;
  const Duration deadline_;
  const std::unique_ptr<net::RemoteChannel> channel_;
  uint64_t gradient_key_ = 0;
};

}  // namespace dtf::wire
