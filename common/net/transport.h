#pragma once

// A connected socket, and the TLS on it if there is any.

#include <memory>
#include <string>
#include <utility>

#include "common/base/file.h"
#include "common/net/asio.h"
#include "common/net/tls_session.h"

namespace dtf::net {

// On a loop. Move-only.
struct Transport {
  Transport(Socket socket, std::unique_ptr<TlsSession> tls = nullptr)  // NOLINT: a socket is one
      : socket(std::move(socket)), tls(std::move(tls)) {}
  Socket socket;
  std::unique_ptr<TlsSession> tls;  // null: plain
};

// Between loops. Move-only.
struct AcceptedSocket {
  AcceptedSocket() = default;
  AcceptedSocket(Fd fd, std::unique_ptr<TlsSession> tls = nullptr)  // NOLINT: a socket is one
      : fd(std::move(fd)), tls(std::move(tls)) {}
  Fd fd;
  std::unique_ptr<TlsSession> tls;  // null: plain
};

// As adoptSocket() (socket_options.h).
Transport adoptTransport(asio::io_context& ioc, AcceptedSocket accepted);

}  // namespace dtf::net
