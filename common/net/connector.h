#pragma once

// Connects to a peer that may not have started yet: a cluster's tasks start in any order.

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
  Duration attempt_max = std::chrono::seconds(5);  // one attempt, including name resolution
  Duration backoff_min = std::chrono::milliseconds(10);
  Duration backoff_max = std::chrono::milliseconds(500);
  Duration report_every = std::chrono::seconds(3);
  std::string certified_task{};  // the task that its certificate must name; empty: any of the job
  Credentials credentials{};     // Loop::connect() sets the loop's own
  // Called on the loop while the peer can't be reached.
  std::function<void(std::string last_error, Duration waited)> on_waiting{};
};

// Resolves, connects, sets the socket's options, performs TLS's handshake if there are keys, and
// sends the preamble. Retries with backoff and jitter until `deadline`. Never blocks the loop.
// Dropping the promise abandons the attempt. `port` must outlive the promise.
// Errors: rejects with a dtf::Error inside (error_bridge.h): kUnavailable with peer, address, last
// error and time; kPermission if the last attempts failed because a certificate, this side's or the
// peer's, or the peer's user (own_user.h) was rejected.
kj::Promise<Transport> connectToPeer(AsioEventPort& port, std::string host, uint16_t tcp_port,
                                     ConnectOptions options);

// Like connectToPeer(), with a message stream on the socket. `port` must outlive the stream.
kj::Promise<kj::Own<MessageStream>> connectStream(AsioEventPort& port, std::string host,
                                                  uint16_t tcp_port, ConnectOptions options,
                                                  const Limits& limits,
                                                  std::shared_ptr<BufferPool> pool);

}  // namespace dtf::net
