#pragma once

// Accepts TCP connections that begin with dtf's preamble, and, if there are keys, with TLS and a
// certificate of the job before that.

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
  Duration preamble_deadline = std::chrono::seconds(5);  // includes TLS's handshake
  // Limits on connections without a preamble: in total, and from one address (of IPv6, one network
  // of 64 bits). At a limit, a new connection replaces the oldest one without a certificate, if
  // that has had `pending_spared`; otherwise the new one is closed.
  size_t pending_max = 128;
  size_t pending_of_address_max = 64;
  Duration pending_spared =
      std::chrono::milliseconds(250);  // long enough for tasks that all start at once
  Duration retry_delay = std::chrono::milliseconds(100);  // after EMFILE and the like
  Credentials credentials{};
};

// Each rejected connection is one log line, at most a few of a kind each second:
// event=connection_refused peer= reason=. Each one with a certificate is another:
// event=connection_accepted peer= certificate= kind=, at most 1000 a second.
// Owns: the listening socket, connections without a preamble.
// Borrows: `port` (must outlive this).
// Threads: loop-thread only.
// Blocks: constructor, on the name resolution of `host` if it is neither numeric nor localhost.
// Errors: constructor: kUnavailable if the address can't be bound (with the process that holds the
// port), kBadConfig if `host` is no address of this machine.
class Listener {
 public:
  // `accepted` belongs to no loop yet: call adoptTransport() on the IoThread that will serve it.
  using OnConnection =
      std::function<void(AcceptedSocket accepted, ConnectionKind kind, std::string peer)>;

  // `host` is a name or an address ("localhost", "0.0.0.0", "::1"); port 0 lets the kernel choose.
  Listener(AsioEventPort& port, const std::string& host, uint16_t tcp_port,
           OnConnection on_connection, ListenerOptions options = {});
  // Adopts a TCP socket that is already listening (socket activation, a port reserved by a
  // launcher).
  Listener(AsioEventPort& port, Fd listening, OnConnection on_connection,
           ListenerOptions options = {});
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  uint16_t port() const;
  std::string address() const;  // "127.0.0.1:2221"
  size_t pendingCount() const;  // connections without a preamble

  // Stops listening and closes connections without a preamble. Idempotent.
  void close();

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;  // shared with Asio's handlers, which may outlive this
};

}  // namespace dtf::net
