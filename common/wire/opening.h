#pragma once

// Makes a connection to a task that may not be there yet, up to the answer of its hello.

#include <kj/async.h>

#include <functional>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/cluster/spec.h"
#include "common/net/loop.h"
#include "common/net/message_stream.h"
#include "common/net/preamble.h"
#include "common/net/rpc_connection.h"

namespace dtf::wire {

struct Opening {
  std::string peer;  // "ps/1 (localhost:2222)", for messages
  std::string
      task{};  // that its certificate must name, where there are keys; empty: any of the job
  cluster::Address address;
  net::ConnectionKind kind = net::ConnectionKind::kControl;
  net::Limits limits{};  // of what the peer may send
  std::shared_ptr<net::BufferPool> pool{};
  Duration patience{};    // from the first attempt to the answer of a hello
  Duration answer_max{};  // for the answer of one hello, then it is repeated on a new connection;
                          // 0: `patience`
  // Every few seconds while nobody listens there, besides the log.
  std::function<void(const std::string& what, Duration waited)> on_waiting{};
};

// Says hello on a new connection: done when the peer has taken it.
using SayHello = std::function<kj::Promise<void>(net::RpcConnection&)>;

// A connection that breaks before its hello is answered is made anew: the peer's process may have
// ended before it served, or be only just taking over its socket. What the peer answers is final,
// an error too. `patience` counts the time in which this loop is awake, so that a machine that
// stood still does not cost the peer its time.
// Loop-thread only; `io` must outlive the promise. Rejects with a dtf::Error inside: what the peer
// answered, or kUnavailable that names the peer and the last failure.
kj::Promise<std::unique_ptr<net::RpcConnection>> openConnection(net::Loop& io, Opening opening,
                                                                SayHello say_hello);

}  // namespace dtf::wire
