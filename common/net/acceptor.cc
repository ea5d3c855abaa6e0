#include "common/net/acceptor.h"

#include <fmt/core.h>

#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/log.h"
#include "common/net/event_port.h"
#include "common/net/socket_options.h"

namespace dtf::net {

using asio::ip::tcp;

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

// Out of descriptors or memory: the connection stays in the kernel's queue, and accepting again at
// once would spin.
void Listener::Impl::retryLater(const error_code& ec) {
  if (const auto suppressed = limiter_.allow(kAcceptFailed, SystemClock().now()))
    log::warning("event=accept_failed address={} reason=\"{}\" suppressed={}", address_,
                 ec.message(), *suppressed);
  retry_.expires_after(options_.retry_delay);
  retry_.async_wait([self = shared_from_this()](const error_code&) {
    if (!self->closed_) self->accept();
  });
}

void Listener::Impl::startPreamble(tcp::socket socket) {
  if (pending_.size() >= options_.pending_max) {
    logRefused(kTooMany, peerName(socket.native_handle()),
               fmt::format("{} connections owe their preamble already", pending_.size()));
    return;
  }
  auto pending = std::make_shared<Pending>(std::move(socket), port_.ioc());
  pending->peer = peerName(pending->socket.native_handle());
  pending->place = pending_.insert(pending_.end(), pending);
  pending->deadline.expires_after(options_.preamble_deadline);
  pending->deadline.async_wait([self = shared_from_this(), pending](const error_code& ec) {
    if (ec || self->closed_ || !pending->socket.is_open()) return;
    const auto came = std::span(pending->bytes).first(pending->received);
    self->refuse(pending, kTimeout,
                 fmt::format("sent {} instead of a preamble within {} ms", describeBytes(came),
                             self->options_.preamble_deadline / std::chrono::milliseconds(1)));
  });
  readPreamble(pending);
}

// Exactly the preamble: what follows belongs to Cap'n Proto.
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
  refuse(pending, kJunk, describeBytes(came));
}

void Listener::Impl::handOver(const PendingPtr& pending, ConnectionKind kind) {
  Fd socket;
  try {
    socket = releaseSocket(pending->socket);
    setSocketOptions(socket.get());
  } catch (const Error& error) {
    return refuse(pending, kJunk, error.message());
  }
  drop(pending);
  const auto on_connection = on_connection_;  // it may call close(), which drops the member
  AsioEventPort::Io io(port_);
  on_connection(std::move(socket), kind, pending->peer);
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
