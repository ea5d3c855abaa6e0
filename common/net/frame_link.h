#pragma once

// Internal to common/net: the parts shared by the two halves of an AsioMessageStream.

#include <functional>
#include <utility>

#include "common/net/asio.h"
#include "common/net/event_port.h"
#include "common/net/transport.h"

namespace dtf::net {

// Shared by reader, writer and their Asio handlers, which keep it alive; the last one closes the
// socket.
struct FrameLink {
  FrameLink(AsioEventPort& port, Transport transport)
      : port(port), socket(std::move(transport.socket)), tls(std::move(transport.tls)) {
    socket.non_blocking(true);
  }
  AsioEventPort& port;
  Socket socket;
  const std::unique_ptr<TlsSession> tls;  // null: plain

  // Like Socket::async_read_some() and read_some(), after decryption. `handler` keeps this object
  // and the memory of `room` alive.
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

// Bytes that one connection may move before the loop serves others.
inline constexpr size_t kBurstBytes = 4 << 20;

}  // namespace dtf::net
