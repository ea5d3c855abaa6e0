#pragma once

// The connection over which one task of a session pushes tensors to another one.

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
  Incarnation peer_incarnation;                 // of the peer's process in the session
  cluster::Address address;                     // of the peer
  Duration patience = std::chrono::seconds(5);  // until the peer has answered the hello
  uint64_t chunk_bytes = kChunkBytesMax;        // of a blob, see arena_codec.h
};

// Connects for the first tensor, and again after a loss. The tensors under way at the loss fail,
// and are not repeated.
// Owns: the connection.
// Borrows: `loop` (must outlive this).
// Threads: loop-thread only.
// Blocks: never.
// Errors: through `done` of send(): kUnavailable with the peer, or the error of the peer.
class TensorLink {
 public:
  TensorLink(net::Loop& loop, TensorLinkOptions options);
  ~TensorLink() noexcept(false);
  TensorLink(const TensorLink&) = delete;
  TensorLink& operator=(const TensorLink&) = delete;

  // Sends large tensors from their place in memory, which `owner` keeps. Calls `done` when the peer
  // has received them, or with the error; never after this is destroyed.
  void send(uint64_t plan, uint64_t step, std::vector<engine::PartProgram::Send> tensors,
            std::shared_ptr<const void> owner, engine::Departures::Done done);

  // Resolves when no message of this plan refers to memory of a sender any more. Aborts at once the
  // sends that wait for the connection, and closes the connection after `patience`.
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
  uint64_t bytes_max_ = 0;  // the limit of the peer's memory
  kj::Maybe<kj::ForkedPromise<void>> opening_;
  uint64_t connections_ = 0;              // closed so far: a failure on one doesn't close the next
  kj::Own<class TensorLinkCalls> calls_;  // dies first
};

}  // namespace dtf::wire
