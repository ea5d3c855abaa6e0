#include "common/net/acceptor.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/log.h"
#include "common/net/event_port.h"
#include "common/net/own_user.h"
#include "common/net/socket_options.h"
#include "common/net/tls_keys.h"

namespace dtf::net {

using asio::ip::tcp;

namespace {

constexpr std::byte kHandshakeRecord{22};  // RFC 8446, section 5.1
// Two alerts, "unexpected message" and "close notify". A client that speaks dtf without TLS reads
// at least eight bytes, and recognises them.
constexpr std::array<unsigned char, 14> kTalkTls = {21, 3, 3, 0, 2, 2, 10, 21, 3, 3, 0, 2, 1, 0};
constexpr const char* kNoKeysHere =
    ": the client uses keys, and this task has none (keys: in the cluster file)";

// Confirms that the certificate was accepted: TLS alone doesn't tell the client.
void welcome(TlsSession& tls, ConnectionKind kind) {
  const auto preamble = makePreamble(kind);
  size_t put = 0;
  if (tls.write(preamble.data(), preamble.size(), put) != TlsSession::Io::kDone ||
      put != preamble.size() || tls.flush() != TlsSession::Io::kDone)
    throw Error(ErrorCode::kUnavailable, "the answer to its preamble could not be sent");
}

// Returns the source that the limit per address applies to: an address, or of IPv6 a network of 64
// bits, which one user may have to itself.
std::string sourceOf(const tcp::socket& socket) {
  error_code ec;
  const asio::ip::address address = socket.remote_endpoint(ec).address();
  if (ec || address.is_v4() || address.to_v6().is_v4_mapped())
    return ec ? "?" : address.to_string();
  auto bytes = address.to_v6().to_bytes();
  std::fill(bytes.begin() + 8, bytes.end(), uint8_t{0});
  return asio::ip::address_v6(bytes).to_string() + "/64";
}

}  // namespace

Listener::Impl::Impl(AsioEventPort& port, tcp::acceptor acceptor, OnConnection on_connection,
                     const ListenerOptions& options)
    : port_(port),
      options_(options),
      acceptor_(std::move(acceptor)),
      retry_(port.ioc()),
      on_connection_(std::move(on_connection)),
      address_(localName(acceptor_.native_handle())) {
  DTF_CHECK(on_connection_ != nullptr && acceptor_.is_open());
  error_code ec;
  local_port_ = acceptor_.local_endpoint(ec).port();
}

void Listener::Impl::accept() {
  acceptor_.async_accept([self = shared_from_this()](const error_code& ec, tcp::socket socket) {
    self->onAccept(ec, std::move(socket));
  });
}

void Listener::Impl::onAccept(const error_code& ec, tcp::socket socket) {
  if (closed_) return;
  if (ec == asio::error::connection_aborted || ec == asio::error::interrupted) return accept();
  if (ec) return retryLater(ec);
  startPreamble(std::move(socket));
  accept();
}

// Handles a lack of descriptors or memory. The connection stays in the kernel's queue, and
// accepting again at once would spin. The oldest silent connection makes room for it, and drop()
// ends the wait early.
void Listener::Impl::retryLater(const error_code& ec) {
  if (const auto suppressed = limiter_.allow(kAcceptFailed, SystemClock().now()))
    log::warning("event=accept_failed address={} reason=\"{}\" suppressed={}", address_,
                 ec.message(), *suppressed);
  retry_.expires_after(options_.retry_delay);
  retry_.async_wait([self = shared_from_this()](const error_code&) {
    if (!self->closed_) self->accept();
  });
  const auto oldest =
      std::ranges::find_if(pending_, [](const PendingPtr& each) { return !each->proven; });
  if (oldest == pending_.end() || !hasHadItsTime(**oldest)) return;
  refuse(PendingPtr(*oldest), kTooMany, ec.message() + ": closed to make room for another");
}

bool Listener::Impl::hasHadItsTime(const Pending& pending) const {
  return SystemClock().now() - pending.since >= options_.pending_spared;
}

void Listener::Impl::startPreamble(tcp::socket socket) {
  const std::string source = sourceOf(socket), peer = peerName(socket.native_handle());
  if (options_.credentials.isOwnUserOnly())
    if (const Stranger stranger = strangerThatConnects(socket.native_handle());
        !stranger.why.empty()) {
      if (stranger.has_closed)
        log::debug("event=connection_closed peer={} reason=\"{}\"", peer, stranger.why);
      else
        logRefused(kOtherUser, peer, stranger.why);
      return;
    }
  if (!makeRoomFor(source, peer)) return;
  auto pending = std::make_shared<Pending>(std::move(socket), port_.ioc());
  pending->peer = peer;
  pending->source = source;
  pending->place = pending_.insert(pending_.end(), pending);
  pending->deadline.expires_after(options_.preamble_deadline);
  pending->deadline.async_wait([self = shared_from_this(), pending](const error_code& ec) {
    if (ec || self->closed_ || !pending->socket.is_open()) return;
    const auto came = std::span(pending->bytes).first(pending->received);
    self->refuse(pending, kTimeout,
                 fmt::format("sent {} instead of a preamble within {} ms", describeBytes(came),
                             self->options_.preamble_deadline / std::chrono::milliseconds(1)));
  });
  if (options_.credentials.keys() != nullptr)
    expectTls(pending);
  else
    readPreamble(pending);
}

// Closes the oldest pending connection, but never one that has shown a certificate. So a client
// that only opens connections, however many, delays others by less than the deadline of a preamble.
bool Listener::Impl::makeRoomFor(const std::string& source, const std::string& peer) {
  const auto is_same = [&](const PendingPtr& each) { return each->source == source; };
  const auto of_source = static_cast<size_t>(std::ranges::count_if(pending_, is_same));
  const bool is_crowded = of_source >= options_.pending_of_address_max;
  if (!is_crowded && pending_.size() < options_.pending_max) return true;
  const std::string crowd =
      is_crowded
          ? fmt::format("{} connections from {} have sent no preamble yet", of_source, source)
          : fmt::format("{} connections have sent no preamble yet", pending_.size());
  const auto oldest = std::ranges::find_if(pending_, [&](const PendingPtr& each) {
    return !each->proven && (!is_crowded || is_same(each));
  });
  if (oldest == pending_.end() || !hasHadItsTime(**oldest)) {
    logRefused(kTooMany, peer, crowd);
    return false;
  }
  const auto silent_ms = (SystemClock().now() - (*oldest)->since) / std::chrono::milliseconds(1);
  refuse(PendingPtr(*oldest), kTooMany,
         fmt::format("{}, this one for {} ms: closed to make room for another", crowd, silent_ms));
  return true;
}

// Reads exactly the preamble: the bytes behind it belong to Cap'n Proto.
void Listener::Impl::readPreamble(const PendingPtr& pending) {
  DTF_CHECK(pending->received < kPreambleBytes);
  const auto room = asio::buffer(pending->bytes) + pending->received;
  pending->socket.async_read_some(
      room, [self = shared_from_this(), pending](const error_code& ec, size_t bytes) {
        if (self->closed_ || !pending->socket.is_open()) return;
        pending->received += bytes;
        self->onPreambleBytes(pending, ec);
      });
}

void Listener::Impl::onPreambleBytes(const PendingPtr& pending, const error_code& ec) {
  DTF_CHECK(pending->received <= kPreambleBytes);
  const auto came = std::span(pending->bytes).first(pending->received);
  if (ec == asio::error::eof)
    return refuse(pending, kJunk, "sent " + describeBytes(came) + " and closed the connection");
  if (ec) return refuse(pending, kJunk, ec.message());
  if (pending->received < kPreambleBytes) return readPreamble(pending);
  if (const auto kind = parsePreamble(came)) return handOver(pending, *kind);
  refuse(pending, kJunk, describeBytes(came) + (looksLikeTls(came) ? kNoKeysHere : ""));
}

void Listener::Impl::handOver(const PendingPtr& pending, ConnectionKind kind) {
  AcceptedSocket accepted;
  try {
    if (pending->tls != nullptr) {
      welcome(*pending->tls, kind);
      logAccepted(*pending, kind);
    }
    accepted = {releaseSocket(pending->socket), std::move(pending->tls)};
    setSocketOptions(accepted.fd.get());
  } catch (const Error& error) {
    return refuse(pending, kJunk, error.message());
  }
  drop(pending);
  const auto on_connection = on_connection_;  // it may call close(), which drops the member
  AsioEventPort::Io io(port_);
  on_connection(std::move(accepted), kind, pending->peer);
}

// Peeks at the first bytes, so that a client without TLS gets an explanation.
void Listener::Impl::expectTls(const PendingPtr& pending) {
  whenReady(pending, TlsSession::Io::kWantRead, &Impl::onFirstBytes);
}

void Listener::Impl::onFirstBytes(const PendingPtr& pending) {
  const int fd = pending->socket.native_handle();
  const ssize_t peeked = ::recv(fd, pending->bytes.data(), pending->bytes.size(), MSG_PEEK);
  const auto came = std::span(pending->bytes).first(peeked > 0 ? static_cast<size_t>(peeked) : 0);
  if (came.empty()) return refuse(pending, kJunk, "sent nothing and closed the connection");
  if (came[0] == kHandshakeRecord) {
    pending->tls = options_.credentials.keys()->accept(fd);
    return shakeHands(pending);
  }
  ::send(fd, kTalkTls.data(), kTalkTls.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  refuse(pending, kTls,
         (parsePreamble(came) ? std::string("a dtf program") : describeBytes(came)) +
             " without TLS: this task has keys, so its clients need keys of the job, too");
}

void Listener::Impl::shakeHands(const PendingPtr& pending) {
  const TlsSession::Io io = pending->tls->handshake();
  if (io == TlsSession::Io::kDone) return readSecurePreamble(pending);
  whenReady(pending, io, &Impl::shakeHands);
}

void Listener::Impl::readSecurePreamble(const PendingPtr& pending) {
  pending->proven = true;
  size_t got = 0;
  const auto room = std::span(pending->bytes).subspan(pending->received);
  const TlsSession::Io io = pending->tls->read(room.data(), room.size(), got);
  if (io != TlsSession::Io::kDone) return whenReady(pending, io, &Impl::readSecurePreamble);
  pending->received += got;
  if (pending->received < kPreambleBytes) return readSecurePreamble(pending);
  if (const auto kind = parsePreamble(pending->bytes)) return handOver(pending, *kind);
  refuse(pending, kJunk, describeBytes(pending->bytes));
}

// Calls `next` when the socket is ready for `io`.
void Listener::Impl::whenReady(const PendingPtr& pending, TlsSession::Io io,
                               void (Impl::*next)(const PendingPtr& pending)) {
  if (io == TlsSession::Io::kFailed) return refuse(pending, kTls, pending->tls->failure());
  if (io == TlsSession::Io::kEnd) return refuse(pending, kTls, "it closed the connection");
  const auto event = io == TlsSession::Io::kWantRead ? Socket::wait_read : Socket::wait_write;
  pending->socket.async_wait(event,
                             [self = shared_from_this(), pending, next](const error_code& ec) {
                               if (self->closed_ || !pending->socket.is_open()) return;
                               if (ec) return self->refuse(pending, kJunk, ec.message());
                               (*self.*next)(pending);
                             });
}

void Listener::Impl::refuse(const PendingPtr& pending, Problem problem, std::string_view reason) {
  logRefused(problem, pending->peer, reason);
  drop(pending);
}

void Listener::Impl::drop(const PendingPtr& pending) {
  DTF_CHECK(!closed_ && !pending_.empty());
  pending->deadline.cancel();
  error_code ignored;
  pending->socket.close(ignored);
  pending_.erase(pending->place);
  retry_.cancel();  // a connection that waits for a descriptor has one now
}

void Listener::Impl::logAccepted(const Pending& pending, ConnectionKind kind) {
  if (const auto suppressed = accepted_.allow(0, SystemClock().now()))
    log::info("event=connection_accepted peer={} certificate={} kind={} suppressed={}",
              pending.peer, pending.tls->peer(),
              kind == ConnectionKind::kControl ? "control" : "bulk", *suppressed);
}

void Listener::Impl::logRefused(Problem problem, std::string_view peer, std::string_view reason) {
  if (const auto suppressed = limiter_.allow(problem, SystemClock().now()))
    log::warning("event=connection_refused peer={} reason=\"{}\" suppressed={}", peer, reason,
                 *suppressed);
}

void Listener::Impl::close() {
  if (std::exchange(closed_, true)) return;
  error_code ignored;
  acceptor_.close(ignored);
  retry_.cancel();
  for (const PendingPtr& pending : pending_) {
    pending->deadline.cancel();
    pending->socket.close(ignored);
  }
  pending_.clear();
  on_connection_ = nullptr;
}

}  // namespace dtf::net
