#pragma once

// The server side's connections of one loop. Each is served until its peer closes it.

#include <functional>
#include <list>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/net/log_limiter.h"
#include "common/net/loop.h"
#include "common/net/rpc_connection.h"

namespace dtf::wire {

// The process that sent the hello on a connection (common/wire/types.capnp, Hello).
struct Caller {
  TaskId task;
  Incarnation incarnation;
  uint32_t connection = 0;
};

class ConnectionSet;

// A connection, shared with its sessions. A call may be answered a turn of the loop after its
// connection is gone: code that runs later than a method's own body checks `connection` first.
struct ConnectionHandle {
  net::RpcConnection* connection = nullptr;  // nullptr once it is gone
  bool greeted = false;                      // a hello was accepted: the connection may stay
  // has requested the status: it is closed like any ungreeted connection, but without a log line
  bool visitor = false;
  Caller caller;                 // once greeted by ConnectionSet::greet()
  ConnectionSet* set = nullptr;  // the set that serves it
};
using ConnectionRef = std::shared_ptr<ConnectionHandle>;

// An ungreeted connection is closed after this time, with a log line.
inline constexpr Duration kHelloDeadline = std::chrono::seconds(5);
inline constexpr Duration kHelloGrace = std::chrono::milliseconds(500);  // added to it, see serve()

// Limit for the parameters of one peer's concurrent calls: about a thousand small ones. One larger
// message passes alone.
inline constexpr uint64_t kControlCallsBytesMax = 64 << 10;

// Owns: the connections.
// Borrows: `loop` (must outlive this).
// Threads: loop-thread only, made and destroyed there.
// Blocks: never.
class ConnectionSet {
 public:
  using MakeBootstrap = std::function<capnp::Capability::Client(const ConnectionRef&)>;
  using OnClosed = std::function<void(const void* key)>;

  // `on_closed` is called with the key (the RpcConnection's address) of each connection that ended
  // by itself or was not greeted in time, before the connection is destroyed.
  // `calls_bytes_max`: see net::RpcOptions.
  ConnectionSet(net::Loop& loop, OnClosed on_closed,
                uint64_t calls_bytes_max = kControlCallsBytesMax);
  ~ConnectionSet();

  // Serves `stream`, which has sent a valid preamble. `peer` is its address until a hello names it.
  // Call it from a handler of the loop that kj knows (Loop::post, AsioEventPort::Io).
  void serve(kj::Own<net::MessageStream> stream, std::string peer,
             const MakeBootstrap& make_bootstrap);

  // Compares the caller's claim with its certificate, if there are keys.
  // Errors: kPermission, also logged, if the certificate names another task.
  void checkCaller(const ConnectionHandle& handle, TaskId caller);

  // Accepts the hello: the connection may stay. Closes earlier connections of the same process: it
  // repeats on this one the calls that were unread there.
  void greet(ConnectionHandle& handle, const Caller& caller);

  size_t size() const { return connections_.size(); }

  // The traffic of the present and the ended connections.
  net::Traffic traffic() const;

 private:
  struct Served;
  using Position = std::list<std::unique_ptr<Served>>::iterator;
  void close(Position position);
  enum Refusal { kViolation, kNoHello, kOtherTask, kRefusals };
  void logRefusal(Refusal kind, const std::string& peer, const std::string& reason);

  net::Loop& loop_;
  OnClosed on_closed_;
  const uint64_t calls_bytes_max_;
  net::LogLimiter<kRefusals> limiter_;  // a flood of bad peers must not fill a disk
  std::list<std::unique_ptr<Served>> connections_;
  net::Traffic ended_;                          // of ended connections
  const std::shared_ptr<ConnectionSet*> self_;  // null once this is gone: posted handlers check it
};

// The traffic of one set. Read on the loop of the connections; may be passed to another loop.
struct ConnectionLoad {
  size_t connections = 0;
  net::Traffic traffic;
};
ConnectionLoad loadOf(const ConnectionSet& connections);

}  // namespace dtf::wire
