#include "common/net/tls_greeting.h"

#include <array>
#include <memory>
#include <utility>

#include "common/base/check.h"
#include "common/net/asio_promise.h"

namespace dtf::net {

namespace {

using Io = TlsSession::Io;

// Shared with Asio's handlers, which may outlive the promise.
class SecureGreeting : public std::enable_shared_from_this<SecureGreeting> {
 public:
  SecureGreeting(AsioEventPort& port, Transport transport, ConnectionKind kind)
      : port_(port), transport_(std::move(transport)), preamble_(makePreamble(kind)) {
    DTF_CHECK(transport_.tls != nullptr);
    transport_.socket.non_blocking(true);
  }

  kj::Promise<Transport> run() {
    return shakeHands().then([this] { return std::move(transport_); });
  }

  void close() {
    error_code ignored;
    if (transport_.socket.is_open()) transport_.socket.close(ignored);
  }

 private:
  kj::Promise<void> shakeHands() {
    const Io io = transport_.tls->handshake();
    if (io == Io::kDone) return sendPreamble();
    return whenReady(io).then([this] { return shakeHands(); });
  }

  kj::Promise<void> sendPreamble() {
    size_t put = 0;
    const Io io = transport_.tls->write(preamble_.data(), preamble_.size(), put);
    DTF_CHECK(io != Io::kDone || put == preamble_.size());
    if (io == Io::kFailed) return refused();
    (void)transport_.tls->flush();  // after a failure, an alert may explain it
    return awaitAnswer();
  }

  kj::Promise<void> awaitAnswer() {
    size_t got = 0;
    const Io io = transport_.tls->read(answer_.data() + answered_, answer_.size() - answered_, got);
    if (io == Io::kEnd)
      return toKj(Error(ErrorCode::kUnavailable, "it closed the connection; its log says why"));
    if (io != Io::kDone) return whenReady(io).then([this] { return awaitAnswer(); });
    answered_ += got;
    if (answered_ < answer_.size()) return awaitAnswer();
    if (answer_ != preamble_)
      return toKj(Error(ErrorCode::kUnavailable, "it answered " + describeBytes(answer_)));
    return kj::READY_NOW;
  }

  kj::Promise<void> whenReady(Io io) {
    if (io == Io::kFailed) return refused();
    DTF_CHECK(io == Io::kWantRead || io == Io::kWantWrite);
    const auto event = io == Io::kWantRead ? Socket::wait_read : Socket::wait_write;
    return fromAsio<int>(port_, "TLS handshake",
                         [&](auto handler) {
                           transport_.socket.async_wait(
                               event, [handler, self = shared_from_this()](
                                          const error_code& ec) mutable { handler(ec, 0); });
                         })
        .ignoreResult();
  }

  kj::Promise<void> refused() const {
    const bool lost = transport_.tls->lost();
    return toKj(
        Error(lost ? ErrorCode::kUnavailable : ErrorCode::kPermission, transport_.tls->failure()));
  }

  AsioEventPort& port_;
  Transport transport_;
  const std::array<std::byte, kPreambleBytes> preamble_;
  std::array<std::byte, kPreambleBytes> answer_{};
  size_t answered_ = 0;
};

}  // namespace

kj::Promise<Transport> greetSecurely(AsioEventPort& port, Transport transport,
                                     ConnectionKind kind) {
  auto greeting = std::make_shared<SecureGreeting>(port, std::move(transport), kind);
  auto greeted = greeting->run();
  return greeted.attach(kj::defer([greeting] { greeting->close(); }));
}

}  // namespace dtf::net
