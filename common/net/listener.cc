#include "common/net/listener.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <utility>

#include "common/net/acceptor.h"
#include "common/net/bind.h"
#include "common/net/error_bridge.h"
#include "common/net/event_port.h"
#include "common/net/socket_options.h"

namespace dtf::net {

namespace {

using asio::ip::tcp;

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
