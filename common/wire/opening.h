#pragma once

// Connects to a task that may not have started yet, up to the reply to the hello.

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
  std::string peer;    // "ps/1 (localhost:2222)", for messages
  std::string task{};  // the task in its certificate, if there are keys; empty: any of the job
  cluster::Address address;
  net::ConnectionKind kind = net::ConnectionKind::kControl;
  net::Limits limits{};  // of the peer's messages
  std::shared_ptr<net::BufferPool> pool{};
  Duration patience{};    // from the first attempt to the reply to a hello
  Duration answer_max{};  // for the reply to one hello, which is then repeated on a new connection;
                          // 0: `patience`
  // Called every few seconds while no process listens there; the log has the same.
  std::function<void(const std::string& what, Duration waited)> on_waiting{};
};

// Sends the hello on a new connection; resolves when the peer has accepted it.
using SayHello = std::function<kj::Promise<void>(net::RpcConnection&)>;

// Makes a new connection if one breaks before the reply to its hello: the peer's process may have
// ended before it served, or may only now be taking over its socket. A reply of the peer is final,
// even an error. `patience` counts only the time in which this loop is awake, so the peer loses
// none while this machine is suspended.
// Threads: loop-thread only; `io` must outlive the promise.
// Errors: as a promise, with a dtf::Error inside: the peer's own error, or kUnavailable with the
// peer and the last failure.
kj::Promise<std::unique_ptr<net::RpcConnection>> openConnection(net::Loop& io, Opening opening,
                                                                SayHello say_hello);

}  // namespace dtf::wire
