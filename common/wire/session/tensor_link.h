#pragma once

// One task's way to another task of a session: what leaves here arrives there.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/cluster/spec.h"
#include "common/engine/executor.h"
#include "common/net/buffer_pool.h"
#include "common/net/loop.h"
#include "common/net/rpc_connection.h"
#include "common/wire/arena_codec.h"
#include "common/wire/parts.capnp.h"
#include "common/wire/session/session_token.h"

namespace dtf::wire {

struct TensorLinkOptions {
  SessionToken token;
  TaskId self;
  Incarnation incarnation;  // of this process
  TaskId peer;
  Incarnation peer_incarnation;                 // of the process that is in the session
  cluster::Address address;                     // of the peer
  Duration patience = std::chrono::seconds(5);  // until the peer has answered the hello
  uint64_t chunk_bytes = kChunkBytesMax;        // of a blob, see arena_codec.h
};

// Connects when the first tensor leaves, and again after it was lost: what was under way then has
// failed, and isn't repeated.
// Owns: the connection. Borrows: `loop`.
// Threads: loop-thread only.
// Blocks: never.
// Errors: as values of send(), kUnavailable that names the peer.
class TensorLink {
 public:
  TensorLink(net::Loop& loop, TensorLinkOptions options);
  ~TensorLink() noexcept(false);
  TensorLink(const TensorLink&) = delete;
  TensorLink& operator=(const TensorLink&) = delete;

  // Large tensors leave from where they are, in memory that `owner` keeps. `done` is called when
  // the peer has them, or with why not; never once this is destroyed.
  void send(uint64_t plan, uint64_t step, std::vector<engine::PartProgram::Send> tensors,
            std::shared_ptr<const void> owner, engine::Departures::Done done);

  // Resolves when no message of this plan refers to memory of a sender any more. What still waits
  // for the connection is given up at once, and so is the connection after `patience`.
  kj::Promise<void> drained(uint64_t plan, Duration patience);

 private:
  struct Holds;
  class Hold;

  kj::Promise<void> opened();
  kj::Promise<void> sendNow(uint64_t plan, uint64_t step,
                            const std::vector<engine::PartProgram::Send>& tensors,
                            const std::shared_ptr<const Hold>& hold);
  std::shared_ptr<Holds> holdsOf(uint64_t plan);
  kj::Promise<void> giveUp(uint64_t plan, Holds& holds);
  void close();
  Error lost(const kj::Exception& exception) const;

  net::Loop& loop_;
  const TensorLinkOptions options_;
  const std::string peer_;                            // "worker/1 (localhost:2223)"
  std::map<uint64_t, std::shared_ptr<Holds>> holds_;  // by plan; those without a message may go
  std::shared_ptr<net::RpcConnection> connection_;
  kj::Maybe<schema::TensorSink::Client> sink_;
  uint64_t bytes_max_ = 0;  // that the peer may hold
  kj::Maybe<kj::ForkedPromise<void>> opening_;
  uint64_t connections_ = 0;  // that were closed: what fails with one doesn't close the next
  kj::Own<class TensorLinkCalls> calls_;  // dies first
};

}  // namespace dtf::wire
