#include "common/net/frame_link.h"

#include "common/base/check.h"

namespace dtf::net {

size_t FrameLink::readNow(asio::mutable_buffer room, error_code& ec) {
  if (tls == nullptr) return socket.read_some(room, ec);
  if (!socket.is_open()) {  // the descriptor's number may belong to another connection by now
    ec = asio::error::bad_descriptor;
    return 0;
  }
  size_t got = 0;
  switch (tls->read(room.data(), room.size(), got)) {
    case TlsSession::Io::kDone:
      ec = {};
      return got;
    case TlsSession::Io::kEnd:
      ec = asio::error::eof;
      return 0;
    case TlsSession::Io::kWantRead:
    case TlsSession::Io::kWantWrite:
      ec = asio::error::would_block;
      return 0;
    case TlsSession::Io::kFailed:
      break;
  }
  ec = asio::error::connection_reset;  // tls->failure() explains more
  return 0;
}

// OpenSSL may hold received bytes, so it is read before waiting for the socket. `is_new`: the call
// comes from a reader, and its handler must run in a later turn.
void FrameLink::readSecure(asio::mutable_buffer room, OnRead handler, bool is_new) {
  error_code ec;
  const size_t got = readNow(room, ec);
  if (ec == asio::error::would_block) {
    socket.async_wait(Socket::wait_read,
                      [this, room, handler = std::move(handler)](const error_code& waited) mutable {
                        if (waited) return handler(waited, 0);
                        readSecure(room, std::move(handler), false);
                      });
    return;
  }
  if (!is_new) return handler(ec, got);
  asio::post(socket.get_executor(), [handler = std::move(handler), ec, got] { handler(ec, got); });
}

}  // namespace dtf::net
