#include "common/net/socket_options.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/net/error_bridge.h"
#include "common/net/transport.h"

namespace dtf::net {

namespace {

// Ignores failures: an unknown option is not worth an error, and a bad descriptor was noticed
// before.
void setInt(int fd, int level, int option, int value) {
  (void)::setsockopt(fd, level, option, &value, sizeof(value));
}

int seconds(Duration d) {
  return std::max<int>(
      1, static_cast<int>(std::chrono::duration_cast<std::chrono::seconds>(d).count()));
}

sockaddr_storage addressOf(int fd, int (*get)(int, sockaddr*, socklen_t*)) {
  sockaddr_storage address{};
  socklen_t bytes = sizeof(address);
  if (get(fd, reinterpret_cast<sockaddr*>(&address), &bytes) != 0) address.ss_family = AF_UNSPEC;
  return address;
}

bool isInternet(const sockaddr_storage& address) {
  return address.ss_family == AF_INET || address.ss_family == AF_INET6;
}

asio::ip::tcp::endpoint endpointOf(const sockaddr_storage& address) {
  asio::ip::tcp::endpoint endpoint;
  std::memcpy(endpoint.data(), &address,
              address.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
  return endpoint;
}

std::string nameOf(const sockaddr_storage& address) {
  if (address.ss_family == AF_UNIX) return "unix";
  if (!isInternet(address)) return "unknown";
  const asio::ip::tcp::endpoint endpoint = endpointOf(address);
  const std::string host = endpoint.address().to_string();
  const std::string port = std::to_string(endpoint.port());
  return endpoint.address().is_v6() ? "[" + host + "]:" + port : host + ":" + port;
}

// Disables pacing inside one machine: nothing is congested there, and an algorithm that paces (BBR,
// the default of many cloud images) halves the rate. Every kernel has Reno; if its use is
// forbidden, nothing changes.
void dontPaceInsideOneMachine(int fd) {
  if (!hasBothEndsHere(fd)) return;
  constexpr char kAlgorithm[] = "reno";
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, kAlgorithm, sizeof(kAlgorithm) - 1);
}

}  // namespace

void setSocketOptions(int fd, const SocketOptions& options) {
  const sockaddr_storage local = addressOf(fd, ::getsockname);
  if (local.ss_family == AF_UNSPEC)
    throw toErrorFromErrno(ErrorCode::kUnavailable, "not a socket", errno);
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  if (local.ss_family == AF_UNIX) return;
  setInt(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  setInt(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  setInt(fd, IPPROTO_TCP, TCP_KEEPIDLE, seconds(options.keepalive_idle));
  setInt(fd, IPPROTO_TCP, TCP_KEEPINTVL, seconds(options.keepalive_interval));
  setInt(fd, IPPROTO_TCP, TCP_KEEPCNT, options.keepalive_probes);
  const auto unacknowledged =
      std::chrono::duration_cast<std::chrono::milliseconds>(options.unacknowledged_max);
  setInt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(unacknowledged.count()));
  dontPaceInsideOneMachine(fd);
}

Socket adoptSocket(asio::io_context& ioc, Fd fd) {
  const sockaddr_storage local = addressOf(fd.get(), ::getsockname);
  if (local.ss_family == AF_UNSPEC)
    throw toErrorFromErrno(ErrorCode::kUnavailable, "cannot adopt a socket", errno);
  Socket socket(ioc);
  error_code ec;
  socket.assign(asio::generic::stream_protocol(local.ss_family, 0), fd.get(), ec);
  if (ec) throw toError(ErrorCode::kUnavailable, "cannot adopt a socket", ec);
  (void)fd.release();
  return socket;
}

Transport adoptTransport(asio::io_context& ioc, AcceptedSocket accepted) {
  return {adoptSocket(ioc, std::move(accepted.fd)), std::move(accepted.tls)};
}

Fd releaseSocket(Socket& socket) {
  error_code ec;
  const int fd = socket.release(ec);
  if (ec) throw toError(ErrorCode::kUnavailable, "cannot release a socket", ec);
  return Fd(fd);
}

bool hasBothEndsHere(int fd) {
  const sockaddr_storage local = addressOf(fd, ::getsockname);
  if (local.ss_family == AF_UNIX) return true;
  const sockaddr_storage peer = addressOf(fd, ::getpeername);
  if (!isInternet(local) || !isInternet(peer)) return false;
  const asio::ip::address here = endpointOf(local).address(), there = endpointOf(peer).address();
  return here == there || (here.is_loopback() && there.is_loopback());
}

std::string peerName(int fd) {
  return nameOf(addressOf(fd, ::getpeername));
}

std::string localName(int fd) {
  return nameOf(addressOf(fd, ::getsockname));
}

}  // namespace dtf::net
