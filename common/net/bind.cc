#include "common/net/bind.h"

#include <fcntl.h>

#include "common/net/error_bridge.h"
#include "common/net/event_port.h"
#include "common/net/port_holder.h"

namespace dtf::net {

using asio::ip::tcp;

namespace {

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

}  // namespace

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

}  // namespace dtf::net
