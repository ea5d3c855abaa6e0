#pragma once

// Internal to common/net: a connection of an HttpServer, through TLS if there are keys.

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "common/net/asio.h"
#include "common/net/tls_session.h"

namespace dtf::net {

class TlsKeys;

// With keys the first byte decides: a TLS handshake, or a plain connection, isPlainByMistake(),
// which gets an explanation.
// Owns: the socket, TLS's state.
// Threads: loop-thread only. Handlers are called in a later turn, after close() with an error; they
// keep this object and the memory of a buffer alive.
class HttpStream : public std::enable_shared_from_this<HttpStream> {
 public:
  using OnDone = std::function<void(const error_code&, size_t bytes)>;

  // `keys` null: plain.
  HttpStream(asio::ip::tcp::socket socket, std::shared_ptr<TlsKeys> keys);

  // Reads some bytes, after the handshake. One call at a time.
  void read(asio::mutable_buffer room, OnDone done);
  // Writes all bytes. One call at a time.
  void write(asio::const_buffer bytes, OnDone done);
  // Announces that nothing more will be written.
  void endWriting();
  void close();

  int descriptor() { return socket_.native_handle(); }
  // Returns the task in the peer's certificate, after the first read; empty if it has shown none.
  std::string certificate() const { return tls_ == nullptr ? "" : tls_->peer(); }
  bool isPlainByMistake() const { return is_plain_by_mistake_; }
  // Returns the reason of a failure of TLS; empty if it has not failed.
  std::string failure() const { return tls_ == nullptr ? "" : tls_->failure(); }

 private:
  void begin(asio::mutable_buffer room, OnDone done);
  void readSecure(asio::mutable_buffer room, OnDone done);
  void writeSecure(asio::const_buffer rest, size_t bytes, OnDone done);
  void whenReady(TlsSession::Io io, const OnDone& done, std::function<void()> then);
  void later(OnDone done, const error_code& ec, size_t bytes);

  asio::ip::tcp::socket socket_;
  std::shared_ptr<TlsKeys> keys_;  // null after the first bytes
  std::unique_ptr<TlsSession> tls_;
  bool is_plain_by_mistake_ = false;
};

}  // namespace dtf::net
