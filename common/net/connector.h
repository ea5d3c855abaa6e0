#pragma once

// Connects to a peer that may not be there yet: a cluster's tasks start in any order.

#include <kj/async.h>

#include <cstdint>
#include <functional>
#include <string>

#include "common/base/clock.h"
#include "common/net/asio.h"
#include "common/net/credentials.h"
#include "common/net/preamble.h"
#include "common/net/transport.h"

namespace dtf::net {

class BufferPool;
class MessageStream;
struct Limits;

class AsioEventPort;

struct ConnectOptions {
  ConnectionKind kind = ConnectionKind::kControl;
  std::string peer_name{};  // for messages: "ps/0"
  Duration deadline = std::chrono::seconds(60);
  Duration attempt_max = std::chrono::seconds(5);  // one attempt, name resolution included
  Duration backoff_min = std::chrono::milliseconds(10);
  Duration backoff_max = std::chrono::milliseconds(500);
  Duration report_every = std::chrono::seconds(3);
  std::string certified_task{};  // that its certificate must name; empty: any of the job
  Credentials credentials{};     // Loop::connect() sets those of the loop
  // Called on the loop while the peer is not reached.
  std::function<void(std::string last_error, Duration waited)> on_waiting{};
};

// Resolves, connects, sets the socket's options, with keys shakes hands over TLS, and sends the
// preamble; retries with back-off and jitter until `deadline`. Never blocks the loop. Dropping the
// promise abandons the attempt. `port` must outlive the promise. Rejects with a dtf::Error inside
// (error_bridge.h), kUnavailable, that names peer, address, last error and time; kPermission when
// to the end it was the certificate, this side's or the other's, that was refused, or the other's
// user (own_user.h).
kj::Promise<Transport> connectToPeer(AsioEventPort& port, std::string host, uint16_t tcp_port,
                                     ConnectOptions options);

// connectToPeer(), and a message stream on the socket. `port` must outlive the stream.
kj::Promise<kj::Own<MessageStream>> connectStream(AsioEventPort& port, std::string host,
                                                  uint16_t tcp_port, ConnectOptions options,
                                                  const Limits& limits,
                                                  std::shared_ptr<BufferPool> pool);

}  // namespace dtf::net
