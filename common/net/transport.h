#pragma once

// A connected socket, with TLS if there are keys.

#include <memory>
#include <string>
#include <utility>

#include "common/base/file.h"
#include "common/net/asio.h"
#include "common/net/tls_session.h"

namespace dtf::net {

// A connection on a loop. Move-only.
struct Transport {
  Transport(Socket socket, std::unique_ptr<TlsSession> tls = nullptr)  // NOLINT: a socket is one
      : socket(std::move(socket)), tls(std::move(tls)) {}
  Socket socket;
  std::unique_ptr<TlsSession> tls;  // null: plain
};

// A connection between loops. Move-only.
struct AcceptedSocket {
  AcceptedSocket() = default;
  AcceptedSocket(Fd fd, std::unique_ptr<TlsSession> tls = nullptr)  // NOLINT: a socket is one
      : fd(std::move(fd)), tls(std::move(tls)) {}
  Fd fd;
  std::unique_ptr<TlsSession> tls;  // null: plain
};

// Like adoptSocket() (socket_options.h).
Transport adoptTransport(asio::io_context& ioc, AcceptedSocket accepted);

}  // namespace dtf::net
