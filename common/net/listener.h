#pragma once

// Accepts TCP connections and lets through only those that open with our preamble.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/net/preamble.h"

namespace dtf::net {

class AsioEventPort;

struct ListenerOptions {
  Duration preamble_deadline = std::chrono::seconds(5);
  size_t pending_max =
      128;  // connections whose preamble has not come yet; one more is closed at once
  Duration retry_delay = std::chrono::milliseconds(100);  // after EMFILE and the like
};

// A refused connection is one log line, at most a few of a kind each second:
// event=connection_refused peer= reason= Owns: the listening socket, connections without a
// preamble.
// Borrows: `port` (must outlive this).
// Threads: loop-thread only.
// Blocks: constructor, on the name resolution of `host` when it is not numeric or localhost.
// Errors: constructor: kUnavailable when the address can't be bound (names who holds the port),
// kBadConfig when `host` is no address of this machine.
class Listener {
 public:
  // `socket` belongs to no loop yet: adoptSocket() (socket_options.h) it on the IoThread that is to
  // serve it.
  using OnConnection = std::function<void(Fd socket, ConnectionKind kind, std::string peer)>;

  // `host` is a name or an address ("localhost", "0.0.0.0", "::1"); port 0 lets the kernel choose.
  Listener(AsioEventPort& port, const std::string& host, uint16_t tcp_port,
           OnConnection on_connection, ListenerOptions options = {});
  // Adopts a TCP socket that listens already (socket activation, a launcher that reserved the
  // port).
  Listener(AsioEventPort& port, Fd listening, OnConnection on_connection,
           ListenerOptions options = {});
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  uint16_t port() const;
  std::string address() const;  // "127.0.0.1:2221"
  size_t pendingCount() const;  // connections that owe their preamble

  // Stops listening and closes connections that owe their preamble. Idempotent.
  void close();

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;  // shared with Asio's handlers, which may run after this is gone
};

}  // namespace dtf::net
