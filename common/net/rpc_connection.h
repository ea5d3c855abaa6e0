#pragma once

// One Cap'n Proto RPC connection: message stream, two-party network and RPC system, in the right
// order of life.

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
  // Parameters of calls that are being served at once; beyond it nothing more is read from this
  // connection.
  uint64_t calls_bytes_max = uint64_t{256} << 20;
  // Server side: answers that wait behind the one being written. Beyond it nothing more is read
  // from this connection: whoever doesn't read its answers is not served. (A client must go on
  // reading, or two full ends would wait for each other.)
  uint64_t unread_bytes_max = uint64_t{256} << 10;
};

// Owns: the stream, the RPC system, the bootstrap capability.
// Threads: loop-thread only: made, used and destroyed there, before the Reactor.
// Blocks: never.
// Errors: as promises of calls; when the peer is gone, DISCONNECTED, also for calls made later.
class RpcConnection {
 public:
  // Makes the server's session object, which may use the connection for as long as it lives itself.
  using MakeBootstrap = std::function<capnp::Capability::Client(RpcConnection&)>;

  // Server side.
  RpcConnection(kj::Own<MessageStream> stream, const MakeBootstrap& make_bootstrap,
                RpcOptions options);
  // Client side.
  RpcConnection(kj::Own<MessageStream> stream, RpcOptions options);
  ~RpcConnection() noexcept(false);
  RpcConnection(const RpcConnection&) = delete;
  RpcConnection& operator=(const RpcConnection&) = delete;

  // The peer's bootstrap capability: `connection.bootstrap().castAs<ParameterServer>()`. Client
  // side only.
  capnp::Capability::Client bootstrap();

  // Resolves when the peer is gone, for any reason. To be awaited by the owner, who then destroys
  // this.
  kj::Promise<void> onDisconnect();

  const std::string& peer() const { return options_.peer; }
  void setPeer(std::string peer) {
    options_.peer = std::move(peer);
  }  // once hello has said who it is
  MessageStream& stream() { return *stream_; }

  // Outgoing bytes in memory: capnp queues results without bound, so a server checks this before it
  // makes more.
  uint64_t queuedBytes();

 private:
  struct Rpc;
  RpcOptions options_;
  kj::Own<MessageStream> stream_;
  kj::Own<Rpc> rpc_;  // dies first
};

}  // namespace dtf::net
