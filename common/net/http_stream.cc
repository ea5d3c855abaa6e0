#include "common/net/http_stream.h"

#include <sys/socket.h>

#include <utility>

#include "common/base/check.h"
#include "common/net/tls_keys.h"

namespace dtf::net {

namespace {
constexpr char kHandshakeByte = 22;  // RFC 8446, section 5.1
}

HttpStream::HttpStream(asio::ip::tcp::socket socket, std::shared_ptr<TlsKeys> keys)
    : socket_(std::move(socket)), keys_(std::move(keys)) {
  socket_.non_blocking(true);
}

void HttpStream::read(asio::mutable_buffer room, OnDone done) {
  DTF_CHECK(room.size() > 0 && done != nullptr);
  if (keys_ != nullptr) return begin(room, std::move(done));
  if (tls_ != nullptr) return readSecure(room, std::move(done));
  socket_.async_read_some(room, [self = shared_from_this(), done = std::move(done)](
                                    const error_code& ec, size_t bytes) { done(ec, bytes); });
}

// Peeks at the first bytes.
void HttpStream::begin(asio::mutable_buffer room, OnDone done) {
  DTF_CHECK(tls_ == nullptr);
  whenReady(TlsSession::Io::kWantRead, done, [this, room, done] {
    char first = kHandshakeByte;
    (void)::recv(descriptor(), &first, 1, MSG_PEEK | MSG_DONTWAIT);
    const std::shared_ptr<TlsKeys> keys = std::exchange(keys_, nullptr);
    is_plain_by_mistake_ = first != kHandshakeByte;
    if (!is_plain_by_mistake_) tls_ = keys->acceptAnybody(descriptor());
    read(room, done);
  });
}

void HttpStream::readSecure(asio::mutable_buffer room, OnDone done) {
  size_t got = 0;
  TlsSession::Io io = TlsSession::Io::kDone;
  if (!tls_->established()) io = tls_->handshake();
  if (io == TlsSession::Io::kDone) io = tls_->read(room.data(), room.size(), got);
  if (io == TlsSession::Io::kDone) return later(std::move(done), {}, got);
  whenReady(io, done, [this, room, done] { readSecure(room, done); });
}

void HttpStream::write(asio::const_buffer bytes, OnDone done) {
  if (tls_ != nullptr && tls_->established())
    return writeSecure(bytes, bytes.size(), std::move(done));
  if (tls_ != nullptr || keys_ != nullptr)  // a reply before the handshake is impossible
    return later(std::move(done), asio::error::not_connected, 0);
  asio::async_write(socket_, bytes,
                    [self = shared_from_this(), done = std::move(done)](
                        const error_code& ec, size_t sent) { done(ec, sent); });
}

void HttpStream::writeSecure(asio::const_buffer rest, size_t bytes, OnDone done) {
  TlsSession::Io io = TlsSession::Io::kDone;
  while (rest.size() > 0 && io == TlsSession::Io::kDone) {
    size_t put = 0;
    io = tls_->write(rest.data(), rest.size(), put);
    if (io == TlsSession::Io::kDone) rest += put;
    if (io == TlsSession::Io::kWantWrite) io = tls_->flush();
  }
  if (io == TlsSession::Io::kDone) io = tls_->flush();
  if (io == TlsSession::Io::kDone) return later(std::move(done), {}, bytes);
  whenReady(io, done, [this, rest, bytes, done] { writeSecure(rest, bytes, done); });
}

// Calls `then` when the socket is ready for `io`.
void HttpStream::whenReady(TlsSession::Io io, const OnDone& done, std::function<void()> then) {
  if (io == TlsSession::Io::kEnd) return later(done, asio::error::eof, 0);
  if (io == TlsSession::Io::kFailed) return later(done, asio::error::connection_reset, 0);
  const auto event = io == TlsSession::Io::kWantRead ? asio::ip::tcp::socket::wait_read
                                                     : asio::ip::tcp::socket::wait_write;
  socket_.async_wait(
      event, [self = shared_from_this(), done, then = std::move(then)](const error_code& ec) {
        if (ec) return done(ec, 0);
        if (!self->socket_.is_open()) return done(asio::error::operation_aborted, 0);
        then();
      });
}

void HttpStream::later(OnDone done, const error_code& ec, size_t bytes) {
  asio::post(socket_.get_executor(),
             [self = shared_from_this(), done = std::move(done), ec, bytes] { done(ec, bytes); });
}

void HttpStream::endWriting() {
  if (tls_ != nullptr) tls_->sayEnd();
  error_code ignored;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
}

void HttpStream::close() {
  error_code ignored;
  socket_.close(ignored);
}

}  // namespace dtf::net
