#pragma once

// Internal to common/net: the accept loop of a Listener.

#include <array>
#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "common/net/asio.h"
#include "common/net/listener.h"
#include "common/net/log_limiter.h"

namespace dtf::net {

// Accepts connections, performs TLS handshakes, reads preambles, and rejects or hands over.
// Owns: the listening socket, pending connections.
// Threads: loop-thread only. Its own handlers keep it alive; after close() they do nothing.
class Listener::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(AsioEventPort& port, asio::ip::tcp::acceptor acceptor, OnConnection on_connection,
       const ListenerOptions& options);

  void accept();
  void close();
  uint16_t localPort() const { return local_port_; }
  const std::string& address() const { return address_; }
  size_t pendingCount() const { return pending_.size(); }

 private:
  enum Problem : size_t { kJunk, kTimeout, kTooMany, kAcceptFailed, kTls, kOtherUser, kProblems };

  // A connection that hasn't sent its preamble yet, or is still in TLS's handshake.
  struct Pending {
    Pending(asio::ip::tcp::socket&& accepted, asio::io_context& ioc)
        : socket(std::move(accepted)), deadline(ioc) {}
    Socket socket;
    std::unique_ptr<TlsSession> tls;
    asio::steady_timer deadline;
    std::string peer;
    std::string source;   // the source's address, or network
    bool proven = false;  // it has shown a certificate of the job
    TimePoint since = SystemClock().now();
    std::array<std::byte, kPreambleBytes> bytes{};
    size_t received = 0;
    std::list<std::shared_ptr<Pending>>::iterator place;
  };
  using PendingPtr = std::shared_ptr<Pending>;

  void onAccept(const error_code& ec, asio::ip::tcp::socket socket);
  void retryLater(const error_code& ec);
  void startPreamble(asio::ip::tcp::socket socket);
  bool hasHadItsTime(const Pending& pending) const;
  bool makeRoomFor(const std::string& source, const std::string& peer);
  void expectTls(const PendingPtr& pending);
  void onFirstBytes(const PendingPtr& pending);
  void shakeHands(const PendingPtr& pending);
  void readSecurePreamble(const PendingPtr& pending);
  void whenReady(const PendingPtr& pending, TlsSession::Io io,
                 void (Impl::*next)(const PendingPtr& pending));
  void readPreamble(const PendingPtr& pending);
  void onPreambleBytes(const PendingPtr& pending, const error_code& ec);
  void handOver(const PendingPtr& pending, ConnectionKind kind);
  void refuse(const PendingPtr& pending, Problem problem, std::string_view reason);
  void drop(const PendingPtr& pending);
  void logAccepted(const Pending& pending, ConnectionKind kind);
  void logRefused(Problem problem, std::string_view peer, std::string_view reason);

  AsioEventPort& port_;
  const ListenerOptions options_;
  asio::ip::tcp::acceptor acceptor_;
  asio::steady_timer retry_;
  OnConnection on_connection_;
  uint16_t local_port_ = 0;
  std::string address_;
  bool closed_ = false;
  std::list<PendingPtr> pending_;
  LogLimiter<kProblems> limiter_;
  LogLimiter<1, 1000> accepted_;  // for certificates: all tasks of a job start at once
};

}  // namespace dtf::net
