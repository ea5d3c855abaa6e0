#pragma once

// Accepts TCP connections and lets through only those that open with our preamble, and, with keys,
// before that with TLS and a certificate of the job.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/net/credentials.h"
#include "common/net/preamble.h"
#include "common/net/transport.h"

namespace dtf::net {

class AsioEventPort;

struct ListenerOptions {
  Duration preamble_deadline = std::chrono::seconds(5);  // TLS's handshake included
  // Connections whose preamble has not come yet: in all, and from one address (of IPv6, one network
  // of 64 bits). Who comes when there are that many takes the place of the one that has shown no
  // certificate for longest, if that has had `pending_spared`; else it is closed at once.
  size_t pending_max = 128;
  size_t pending_of_address_max = 64;
  Duration pending_spared =
      std::chrono::milliseconds(250);  // tasks that all start at once get through
  Duration retry_delay = std::chrono::milliseconds(100);  // after EMFILE and the like
  Credentials credentials{};
};

// A refused connection is one log line, at most a few of a kind each second:
// event=connection_refused peer= reason=. One that has shown a certificate is another:
// event=connection_accepted peer= certificate= kind=, at most 1000 a second.
// Owns: the listening socket, connections without a
// preamble.
// Borrows: `port` (must outlive this).
// Threads: loop-thread only.
// Blocks: constructor, on the name resolution of `host` when it is not numeric or localhost.
// Errors: constructor: kUnavailable when the address can't be bound (names who holds the port),
// kBadConfig when `host` is no address of this machine.
class Listener {
 public:
  // `accepted` belongs to no loop yet: adoptTransport() it on the IoThread that is to serve it.
  using OnConnection =
      std::function<void(AcceptedSocket accepted, ConnectionKind kind, std::string peer)>;

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
