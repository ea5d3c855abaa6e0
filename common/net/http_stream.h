#pragma once

// Inside common/net: the bytes of a connection of an HttpServer, through TLS where there are keys.

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "common/net/asio.h"
#include "common/net/tls_session.h"

namespace dtf::net {

class TlsKeys;

// With keys the first byte decides: a TLS handshake, or a plain connection, isPlainByMistake(),
// which is to be told so.
// Owns: the socket, TLS's state.
// Threads: loop-thread only. Handlers are called in a turn of their own, after close() with an
// error; they keep this, and what a buffer refers to, alive.
class HttpStream : public std::enable_shared_from_this<HttpStream> {
 public:
  using OnDone = std::function<void(const error_code&, size_t bytes)>;

  // `keys` null: plain.
  HttpStream(asio::ip::tcp::socket socket, std::shared_ptr<TlsKeys> keys);

  // Some bytes, after the handshake. One at a time.
  void read(asio::mutable_buffer room, OnDone done);
  // All of them. One at a time.
  void write(asio::const_buffer bytes, OnDone done);
  // Nothing more is to be written.
  void endWriting();
  void close();

  int descriptor() { return socket_.native_handle(); }
  // Whom the peer's certificate names, once something was read; empty: it has shown none.
  std::string certificate() const { return tls_ == nullptr ? "" : tls_->peer(); }
  bool isPlainByMistake() const { return is_plain_by_mistake_; }
  // Why TLS has failed; empty: it hasn't.
  std::string failure() const { return tls_ == nullptr ? "" : tls_->failure(); }

 private:
  void begin(asio::mutable_buffer room, OnDone done);
  void readSecure(asio::mutable_buffer room, OnDone done);
  void writeSecure(asio::const_buffer rest, size_t bytes, OnDone done);
  void whenReady(TlsSession::Io io, const OnDone& done, std::function<void()> then);
  void later(OnDone done, const error_code& ec, size_t bytes);

  asio::ip::tcp::socket socket_;
  std::shared_ptr<TlsKeys> keys_;  // null once the first bytes have come
  std::unique_ptr<TlsSession> tls_;
  bool is_plain_by_mistake_ = false;
};

}  // namespace dtf::net
