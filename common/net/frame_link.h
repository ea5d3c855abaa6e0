#pragma once

// Inside common/net: what the two halves of an AsioMessageStream share.

#include <functional>
#include <utility>

#include "common/net/asio.h"
#include "common/net/event_port.h"
#include "common/net/transport.h"

namespace dtf::net {

// Shared by reader, writer and their Asio handlers, which keep it alive; the last of them closes
// the socket.
struct FrameLink {
  FrameLink(AsioEventPort& port, Transport transport)
      : port(port), socket(std::move(transport.socket)), tls(std::move(transport.tls)) {
    socket.non_blocking(true);
  }
  AsioEventPort& port;
  Socket socket;
  const std::unique_ptr<TlsSession> tls;  // null: plain

  // Socket::async_read_some() and read_some(), of what was encrypted too. `handler` keeps this and
  // what `room` refers to alive.
  template <class Handler>
  void readAsync(asio::mutable_buffer room, Handler handler) {
    if (tls == nullptr) return socket.async_read_some(room, std::move(handler));
    readSecure(room, std::move(handler), true);
  }
  size_t readNow(asio::mutable_buffer room, error_code& ec);

 private:
  using OnRead = std::function<void(const error_code&, size_t)>;
  void readSecure(asio::mutable_buffer room, OnRead handler, bool is_new);
};

// One connection may move this much before the loop looks at the others.
inline constexpr size_t kBurstBytes = 4 << 20;

}  // namespace dtf::net
