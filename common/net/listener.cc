#include "common/net/listener.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <utility>

#include "common/net/acceptor.h"
#include "common/net/error_bridge.h"
#include "common/net/event_port.h"
#include "common/net/port_holder.h"
#include "common/net/socket_options.h"

namespace dtf::net {

namespace {

using asio::ip::tcp;

tcp::endpoint resolve(AsioEventPort& port, const std::string& host, uint16_t tcp_port) {
  error_code ec;
  const auto address = asio::ip::make_address(host == "localhost" ? "127.0.0.1" : host, ec);
  if (!ec) return {address, tcp_port};
  tcp::resolver resolver(port.ioc());
  const auto found = resolver.resolve(host, std::to_string(tcp_port), tcp::resolver::passive, ec);
  if (ec || found.empty())
    throw toError(ErrorCode::kBadConfig,
                  "cannot listen on " + host + ": the host name can't be resolved", ec);
  return *found.begin();
}

std::string inUseBy(uint16_t tcp_port) {
  const std::string holder = portHolder(tcp_port);
  return "the port is in use by " + (holder.empty() ? "a process of another user" : holder);
}

Error bindError(const std::string& host, uint16_t tcp_port, const error_code& ec) {
  const std::string what = "cannot listen on " + host + ":" + std::to_string(tcp_port);
  if (ec == asio::error::address_in_use)
    return Error(ErrorCode::kUnavailable, what + ": " + inUseBy(tcp_port));
  if (ec == asio::error::access_denied) return toError(ErrorCode::kPermission, what, ec);
  if (ec.value() == EADDRNOTAVAIL)
    return Error(ErrorCode::kBadConfig, what + ": " + host + " is not an address of this machine");
  return toError(ErrorCode::kUnavailable, what, ec);
}

tcp::acceptor bindAndListen(AsioEventPort& port, const std::string& host, uint16_t tcp_port) {
  const tcp::endpoint endpoint = resolve(port, host, tcp_port);
  tcp::acceptor acceptor(port.ioc());
  error_code ec;
  acceptor.open(endpoint.protocol(), ec);
  if (!ec) acceptor.set_option(tcp::acceptor::reuse_address(true), ec);
  if (!ec) acceptor.bind(endpoint, ec);
  if (!ec) acceptor.listen(tcp::acceptor::max_listen_connections, ec);
  if (ec) throw bindError(host, tcp_port, ec);
  ::fcntl(acceptor.native_handle(), F_SETFD, FD_CLOEXEC);
  return acceptor;
}

tcp::acceptor adoptListening(AsioEventPort& port, Fd listening) {
  int accepting = 0;
  socklen_t bytes = sizeof(accepting);
  sockaddr_storage address{};
  socklen_t address_bytes = sizeof(address);
  if (::getsockopt(listening.get(), SOL_SOCKET, SO_ACCEPTCONN, &accepting, &bytes) != 0 ||
      ::getsockname(listening.get(), reinterpret_cast<sockaddr*>(&address), &address_bytes) != 0 ||
      !accepting || (address.ss_family != AF_INET && address.ss_family != AF_INET6))
    throw Error(ErrorCode::kBadConfig, "file descriptor " + std::to_string(listening.get()) +
                                           " is not a listening TCP socket");
  tcp::acceptor acceptor(port.ioc());
  error_code ec;
  acceptor.assign(address.ss_family == AF_INET ? tcp::v4() : tcp::v6(), listening.get(), ec);
  if (ec) throw toError(ErrorCode::kUnavailable, "cannot adopt a listening socket", ec);
  (void)listening.release();
  ::fcntl(acceptor.native_handle(), F_SETFD, FD_CLOEXEC);
  return acceptor;
}

}  // namespace

Listener::Listener(AsioEventPort& port, const std::string& host, uint16_t tcp_port,
                   OnConnection on_connection, ListenerOptions options)
    : impl_(std::make_shared<Impl>(port, bindAndListen(port, host, tcp_port),
                                   std::move(on_connection), options)) {
  impl_->accept();
}

Listener::Listener(AsioEventPort& port, Fd listening, OnConnection on_connection,
                   ListenerOptions options)
    : impl_(std::make_shared<Impl>(port, adoptListening(port, std::move(listening)),
                                   std::move(on_connection), options)) {
  impl_->accept();
}

Listener::~Listener() {
  close();
}

uint16_t Listener::port() const {
  return impl_->localPort();
}

std::string Listener::address() const {
  return impl_->address();
}

size_t Listener::pendingCount() const {
  return impl_->pendingCount();
}

void Listener::close() {
  impl_->close();
}

}  // namespace dtf::net
