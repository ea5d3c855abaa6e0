#pragma once

// Sockets: options, names, and moving one between loops.

#include <string>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/net/asio.h"

namespace dtf::net {

// Limits after which a silent peer counts as dead. Keepalive detects it when idle, TCP_USER_TIMEOUT
// when data is unacknowledged. A process that is merely frozen is detected only by a deadline of
// the application.
struct SocketOptions {
  Duration keepalive_idle = std::chrono::seconds(10);
  Duration keepalive_interval = std::chrono::seconds(5);
  int keepalive_probes = 3;
  Duration unacknowledged_max = std::chrono::seconds(20);
};

// Sets TCP_NODELAY and the above, and disables pacing between two ends on one machine. No effect on
// a Unix socket. Errors: kUnavailable if `fd` is no socket.
void setSocketOptions(int fd, const SocketOptions& options = {});

// Moves a connected stream socket (TCP or Unix) into `ioc`, on its loop's thread. Errors:
// kUnavailable if `fd` is none.
Socket adoptSocket(asio::io_context& ioc, Fd fd);

// Takes the socket out of its loop; no operation may be pending on it.
Fd releaseSocket(Socket& socket);

// Returns "127.0.0.1:5555", "[::1]:5555", "unix", or "unknown" if `fd` is not connected.
std::string peerName(int fd);
std::string localName(int fd);

// Returns whether both ends of a connected socket have the same address, or are on loopback (a
// host's own name may be 127.0.1.1), or it is a Unix socket.
bool hasBothEndsHere(int fd);

}  // namespace dtf::net
