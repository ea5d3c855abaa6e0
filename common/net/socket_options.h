#pragma once

// Sockets: options, names, and moving one between loops.

#include <string>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/net/asio.h"

namespace dtf::net {

// When a silent peer counts as dead. Keepalive notices it when idle, TCP_USER_TIMEOUT when data is
// unacknowledged; a process that is merely frozen is noticed by neither, only by a deadline of the
// application.
struct SocketOptions {
  Duration keepalive_idle = std::chrono::seconds(10);
  Duration keepalive_interval = std::chrono::seconds(5);
  int keepalive_probes = 3;
  Duration unacknowledged_max = std::chrono::seconds(20);
};

// TCP_NODELAY and the above, and no pacing between two ends on one machine. No effect on a Unix
// socket. Throws dtf::Error kUnavailable when `fd` is no socket.
void setSocketOptions(int fd, const SocketOptions& options = {});

// Takes a connected stream socket (TCP or Unix) into `ioc`; its loop's thread must be the caller.
// Throws dtf::Error kUnavailable when `fd` is none.
Socket adoptSocket(asio::io_context& ioc, Fd fd);

// Gives the socket back, out of its loop; no operation may be pending on it.
Fd releaseSocket(Socket& socket);

// "127.0.0.1:5555", "[::1]:5555", "unix", or "unknown" when `fd` is not connected.
std::string peerName(int fd);
std::string localName(int fd);

// Whether both ends of a connected socket have the same address, or are loopback's (a host's own
// name may be 127.0.1.1), or it is a Unix socket.
bool hasBothEndsHere(int fd);

}  // namespace dtf::net
