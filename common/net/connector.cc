#include "common/net/connector.h"

#include <fmt/core.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/random.h"
#include "common/net/asio_promise.h"
#include "common/net/error_bridge.h"
#include "common/net/message_stream.h"
#include "common/net/own_user.h"
#include "common/net/socket_options.h"
#include "common/net/timer.h"
#include "common/net/tls_greeting.h"
#include "common/net/tls_keys.h"

namespace dtf::net {

namespace {

using asio::ip::tcp;
using Endpoints = std::vector<tcp::endpoint>;

// Reaches one peer: attempts, pauses, reports. Lives as long as the promise.
class Connecting {
 public:
  Connecting(AsioEventPort& port, std::string host, uint16_t tcp_port, ConnectOptions options)
      : port_(port),
        timer_(port),
        host_(std::move(host)),
        tcp_port_(tcp_port),
        options_(std::move(options)),
        start_(timer_.now()),
        backoff_(options_.backoff_min),
        random_(static_cast<uint64_t>((start_ - kj::origin<kj::TimePoint>()) / kj::NANOSECONDS),
                reinterpret_cast<uintptr_t>(this)) {
    DTF_CHECK(options_.backoff_min > Duration(0) && options_.backoff_max >= options_.backoff_min);
    DTF_CHECK(!options_.on_waiting || options_.report_every > Duration(0));
  }

  kj::Promise<Transport> run() {
    if (!options_.on_waiting) return tryUntilDeadline();
    return tryUntilDeadline().exclusiveJoin(
        reportForEver().then([]() -> Transport { KJ_UNREACHABLE; }));
  }

 private:
  Duration waited() const { return fromKj(timer_.now() - start_); }
  Duration left() const { return options_.deadline - waited(); }
  std::string address() const { return host_ + ":" + std::to_string(tcp_port_); }

  kj::Promise<Transport> tryUntilDeadline() {
    const Duration attempt_max = std::max(std::min(options_.attempt_max, left()), Duration(0));
    return timer_.timeoutAfter(toKj(attempt_max), kj::evalNow([this] { return attempt(); }))
        .catch_([this](kj::Exception&& exception) -> kj::Promise<Transport> {
          noteFailure(exception);
          const Duration pause = nextPause();
          if (pause >= left()) return toKj(deadlineError());
          return timer_.afterDelay(toKj(pause)).then([this] { return tryUntilDeadline(); });
        });
  }

  kj::Promise<Transport> attempt() {
    error_code ec;
    const auto numeric = asio::ip::make_address(host_ == "localhost" ? "127.0.0.1" : host_, ec);
    if (!ec) return connectAny({tcp::endpoint(numeric, tcp_port_)}, 0);
    return resolve().then(
        [this](Endpoints&& endpoints) { return connectAny(std::move(endpoints), 0); });
  }

  // Asio resolves on its own thread.
  kj::Promise<Endpoints> resolve() {
    auto resolver = std::make_shared<tcp::resolver>(port_.ioc());
    auto resolved = fromAsio<Endpoints>(port_, "resolve " + host_, [&](auto handler) {
      resolver->async_resolve(
          host_, std::to_string(tcp_port_),
          [handler, resolver](const error_code& ec,
                              const tcp::resolver::results_type& results) mutable {
            handler(ec, Endpoints(results.begin(), results.end()));
          });
    });
    return resolved.attach(kj::defer([resolver] { resolver->cancel(); }));
  }

  // Connects to the first reachable address of `endpoints` from `index` on.
  kj::Promise<Transport> connectAny(Endpoints endpoints, size_t index) {
    if (index >= endpoints.size())
      return toKj(Error(ErrorCode::kUnavailable, host_ + " has no address"));
    auto connected = connectOne(endpoints[index]);
    if (index + 1 == endpoints.size()) return connected;
    return connected.catch_(
        [this, endpoints = std::move(endpoints), index](kj::Exception&&) mutable {
          return connectAny(std::move(endpoints), index + 1);
        });
  }

  kj::Promise<Transport> connectOne(const tcp::endpoint& endpoint) {
    auto socket = std::make_shared<Socket>(port_.ioc());
    auto connected = fromAsio<int>(port_, "connect", [&](auto handler) {
      socket->async_connect(endpoint,
                            [handler, socket](const error_code& ec) mutable { handler(ec, 0); });
    });
    return connected
        .then(
            [this, socket](int) { return bridgeErrors([&] { return greet(std::move(*socket)); }); })
        .attach(kj::defer([socket] {  // an abandoned attempt must not linger in the kernel
          error_code ignored;
          socket->close(ignored);
        }));
  }

  kj::Promise<Transport> greet(Socket socket) const {
    const int fd = socket.native_handle();
    // A loopback connect to a free ephemeral port may connect to itself (simultaneous open) and
    // hold the port forever.
    if (localName(fd) == peerName(fd)) throw Error(ErrorCode::kUnavailable, "nobody listens there");
    setSocketOptions(fd);
    if (const std::shared_ptr<TlsKeys>& keys = options_.credentials.keys(); keys != nullptr) {
      auto tls = keys->connect(fd, options_.certified_task);
      return greetSecurely(port_, {std::move(socket), std::move(tls)}, options_.kind);
    }
    if (options_.credentials.isOwnUserOnly())
      if (const Stranger stranger = strangerThatListens(fd); !stranger.why.empty())
        throw Error(ErrorCode::kPermission, stranger.why);
    const auto preamble = makePreamble(options_.kind);
    const ssize_t sent = ::send(fd, preamble.data(), preamble.size(), MSG_NOSIGNAL);
    if (sent != static_cast<ssize_t>(preamble.size()))
      throw toErrorFromErrno(ErrorCode::kUnavailable, "send the preamble", sent < 0 ? errno : EIO);
    return Transport(std::move(socket));
  }

  // Stores the text for people: Asio's texts unchanged, a dtf::Error without its encoding for RPC.
  void noteFailure(const kj::Exception& exception) {
    const bool cut_short = exception.getType() == kj::Exception::Type::OVERLOADED;
    if (cut_short && is_refused_) return;  // an attempt that ran out of time explains less
    const Error error = toError(exception);
    is_refused_ = error.code() == ErrorCode::kPermission;
    if (cut_short)
      last_error_ = "no answer";
    else
      last_error_ = carriesError(exception) ? error.message() : exception.getDescription().cStr();
  }

  // Doubles the pause, with jitter so that a cluster's workers don't retry in step.
  Duration nextPause() {
    const Duration pause(static_cast<int64_t>(static_cast<double>(backoff_.count()) *
                                              (0.5 + 0.5 * random_.uniform())));
    backoff_ = std::min(backoff_ * 2, options_.backoff_max);
    DTF_CHECK(pause >= Duration(0) && pause <= backoff_);
    return pause;
  }

  Error deadlineError() const {
    const std::string peer = options_.peer_name.empty() ? "" : options_.peer_name + " at ";
    const std::string tried = fmt::format("cannot reach {}{}: tried for {:.1f} s, last error: {}",
                                          peer, address(), toSeconds(waited()), last_error_);
    if (is_refused_) return Error(ErrorCode::kPermission, tried);
    return Error(ErrorCode::kUnavailable,
                 tried + "; is that task running, and is the address right?");
  }

  kj::Promise<void> reportForEver() {
    return timer_.afterDelay(toKj(options_.report_every)).then([this] {
      options_.on_waiting(last_error_, waited());
      return reportForEver();
    });
  }

  AsioEventPort& port_;
  AsioTimer timer_;
  const std::string host_;
  const uint16_t tcp_port_;
  const ConnectOptions options_;
  const kj::TimePoint start_;
  Duration backoff_;
  Random random_;
  std::string last_error_ = "no answer yet";
  bool is_refused_ = false;  // by the reason of the last error
};

}  // namespace

kj::Promise<Transport> connectToPeer(AsioEventPort& port, std::string host, uint16_t tcp_port,
                                     ConnectOptions options) {
  auto connecting = kj::heap<Connecting>(port, std::move(host), tcp_port, std::move(options));
  auto promise = connecting->run();
  return promise.attach(kj::mv(connecting));
}

kj::Promise<kj::Own<MessageStream>> connectStream(AsioEventPort& port, std::string host,
                                                  uint16_t tcp_port, ConnectOptions options,
                                                  const Limits& limits,
                                                  std::shared_ptr<BufferPool> pool) {
  return connectToPeer(port, std::move(host), tcp_port, std::move(options))
      .then([&port, limits, pool = std::move(pool)](Transport transport) -> kj::Own<MessageStream> {
        return kj::heap<AsioMessageStream>(port, std::move(transport), limits, pool);
      });
}

}  // namespace dtf::net
