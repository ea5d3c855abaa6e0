#pragma once

// One Cap'n Proto RPC connection: message stream, two-party network and RPC system, destroyed in
// the right order.

#include <capnp/capability.h>
#include <kj/async.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/net/message_stream.h"

namespace dtf::net {

struct RpcOptions {
  std::string peer{};  // for messages: "worker/1 (127.0.0.1:5555)"
  // The bytes of parameters of all calls being served; beyond it the connection is not read.
  uint64_t calls_bytes_max = uint64_t{256} << 20;
  // Server side: the bytes of replies that wait behind the one being written. Beyond it the
  // connection is not read: a client that doesn't read its replies is not served. (A client must
  // keep reading, or two full ends would wait for each other.)
  uint64_t unread_bytes_max = uint64_t{256} << 10;
};

// Owns: the stream, the RPC system, the bootstrap capability.
// Threads: loop-thread only: made, used and destroyed there, before the Reactor.
// Blocks: never.
// Errors: as promises of calls; DISCONNECTED once the peer is gone, also for later calls.
class RpcConnection {
 public:
  // Makes the server's session object, which may use the connection during its own life.
  using MakeBootstrap = std::function<capnp::Capability::Client(RpcConnection&)>;

  // Server side.
  RpcConnection(kj::Own<MessageStream> stream, const MakeBootstrap& make_bootstrap,
                RpcOptions options);
  // Client side.
  RpcConnection(kj::Own<MessageStream> stream, RpcOptions options);
  ~RpcConnection() noexcept(false);
  RpcConnection(const RpcConnection&) = delete;
  RpcConnection& operator=(const RpcConnection&) = delete;

  // Returns the peer's bootstrap capability: `connection.bootstrap().castAs<ParameterServer>()`.
  // Client side only.
  capnp::Capability::Client bootstrap();

  // Resolves when the peer is gone, for any reason. The owner waits for it, then destroys this.
  kj::Promise<void> onDisconnect();

  const std::string& peer() const { return options_.peer; }
  void setPeer(std::string peer) {
    options_.peer = std::move(peer);
  }  // after hello has identified it
  MessageStream& stream() { return *stream_; }

  // Returns the bytes of outgoing messages in memory: capnp queues results without bound, so a
  // server checks this before it makes more.
  uint64_t queuedBytes();

 private:
  struct Rpc;
  RpcOptions options_;
  kj::Own<MessageStream> stream_;
  kj::Own<Rpc> rpc_;  // dies first
};

}  // namespace dtf::net
