#pragma once

// The server side's connections of one loop: each is served until its peer is gone.

#include <functional>
#include <list>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/net/log_limiter.h"
#include "common/net/loop.h"
#include "common/net/rpc_connection.h"

namespace dtf::daemons {

// Who has said hello on a connection, as Hello has it (common/wire/types.capnp).
struct Caller {
  TaskId task;
  Incarnation incarnation;
  uint32_t connection = 0;
};

class ConnectionSet;

// A connection as its sessions see it. A call may be answered a turn of the loop after its
// connection is gone, so whoever touches the connection later than in a method's own body looks at
// `connection` first.
struct ConnectionHandle {
  net::RpcConnection* connection = nullptr;  // nullptr once it is gone
  bool greeted = false;                      // a hello was accepted: the connection may stay
  bool visitor = false;          // asked for the status: it may not stay, but is no stranger either
  Caller caller;                 // once greeted by ConnectionSet::greet()
  ConnectionSet* set = nullptr;  // that serves it
};
using ConnectionRef = std::shared_ptr<ConnectionHandle>;

// A connection that was not greeted within this time is closed, with a log line.
inline constexpr Duration kHelloDeadline = std::chrono::seconds(5);
inline constexpr Duration kHelloGrace = std::chrono::milliseconds(500);  // after it, once more

// Parameters of the calls that one peer may have under way at once: about a thousand small ones.
// One larger message passes, alone.
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

  // Serves `stream`, whose preamble was good. `peer` is its address until a hello says more. To be
  // called from a handler of the loop that kj knows of (Loop::post, AsioEventPort::Io).
  void serve(kj::Own<net::MessageStream> stream, std::string peer,
             const MakeBootstrap& make_bootstrap);

  // Whether the caller may be who he says: that is for his certificate to say, where there are
  // keys.
  // Errors: kPermission, logged too, when it names another task.
  void checkCaller(const ConnectionHandle& handle, TaskId caller);

  // A hello was accepted: the connection may stay. Earlier ones of the same process are closed:
  // what it sent there and nobody has read yet has been sent again, or will be, on this one.
  void greet(ConnectionHandle& handle, const Caller& caller);

  size_t size() const { return connections_.size(); }

  // Of those there are, and those there were.
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
  net::Traffic ended_;  // of connections that are no more
  const std::shared_ptr<ConnectionSet*>
      self_;  // null once this is gone: posted handlers look here first
};

}  // namespace dtf::daemons
