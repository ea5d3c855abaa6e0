#pragma once

// A connection that is made again when it breaks. It repeats the calls without a reply on the next
// connection.

#include <kj/async.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/net/error_bridge.h"
#include "common/net/log_limiter.h"
#include "common/wire/opening.h"

namespace dtf::wire {

// Returns whether a call failed because its connection broke, and not by an error of the peer or of
// this process.
bool isBroken(const kj::Exception& exception);
// Returns such a failure, for a call that finds the connection broken in its midst.
inline kj::Exception connectionLost() {
  return net::toKj(net::asio::error::not_connected, "the connection was lost");
}

// A peer is away until it answers a hello. A connection alone is no sign of life, since a launcher
// may hold the socket of a process that is gone.
//
// Owns: the connection.
// Borrows: `io` (must outlive this).
// Threads: loop-thread only.
// Errors: as promises. An error that the peer returns is final. kUnavailable if it has answered no
// hello in time, with the reason of the break and of the last attempt.
class HealingConnection {
 public:
  struct Steps {
    SayHello say_hello;
    // Before a connection that broke is made again; may be null.
    std::function<kj::Promise<void>()> before_reopening{};
    // On each connection but the first, before the pending calls are repeated; may be null.
    std::function<kj::Promise<void>()> after_reopening{};
    std::function<void()> on_open{};  // each time, after after_reopening; may be null
    std::function<void(const Error& why)> on_broken{};  // each time; may be null
    // From the first break of a call to the beginning of its last attempt. If that breaks too, the
    // call fails, even if the peer answers hellos. An attempt under way is not interrupted. For
    // calls without a deadline of their own.
    Duration failing_max = Duration::max();
    std::function<void(const Error&)> on_lost{};  // once: there is no next connection; may be null
  };
  // `rejoin`: the time from a break to the reply to the next hello; 0: a break is final.
  // `answer_max`: the time for the reply to one hello after a break.
  HealingConnection(net::Loop& io, Opening opening, Duration rejoin, Duration answer_max,
                    Steps steps);

  // To be called once. The peer may start later than this process: see opening.patience.
  kj::Promise<void> open(std::string_view doing);

  bool isOpen() const { return connection_ != nullptr && !reopening_; }
  // Returns the time of the break that is being repaired; nullopt: none.
  std::optional<TimePoint> brokenSince() const {
    return reopening_ ? std::optional(break_.at) : std::nullopt;
  }
  // While isOpen(), or within after_reopening.
  net::RpcConnection& connection() { return *connection_; }

  // Makes `call` on the connection, and again on the next one as often as the connection breaks
  // before the reply; returns the reply. After open(). `doing`: a literal for errors, "pulling".
  // An exception that `call` throws counts as its reply.
  template <class T, class Call>
  kj::Promise<T> untilAnswered(std::string_view doing, Call call) {
    return untilAnswered<T>(doing, std::move(call), std::nullopt);
  }

  // Handles a silent peer like a break for the reason `why`. No effect while open() is under way,
  // which has its own patience.
  void giveUp(const Error& why) {
    if (made_ > 0) broke(made_, why);
  }
  // Notices at once when the peer closes this connection, even while no call is under way. It is to
  // be called again on each connection.
  void watch();
  // Ends the connection for good: pending and later calls fail with `error`.
  void end(const Error& error);
  // From now on a break is the normal end, or the error of a call.
  void expectClose() { closing_ = true; }
  bool closing() const { return closing_; }

 private:
  template <class T, class Call>
  kj::Promise<T> untilAnswered(std::string_view doing, Call call,
                               std::optional<TimePoint> failing_since);
  template <class T, class Call>
  kj::Promise<T> again(std::string_view doing, Call call, uint64_t made, TimePoint begun,
                       std::optional<TimePoint> failing_since, kj::Exception&& exception);
  kj::Promise<void> whenOpen();
  void take(std::unique_ptr<net::RpcConnection> connection);
  void broke(uint64_t made, const Error& why);
  Error lostWhile(std::string_view doing, const kj::Exception& exception) const;
  kj::Promise<void> reopen();
  kj::Promise<void> noteRefusal(kj::Promise<void> asked);
  void reopened();
  void retire();
  kj::Promise<void> pause();

  net::Loop& io_;
  const Opening opening_;
  const Duration rejoin_;
  const Duration answer_max_;
  const Steps steps_;
  std::unique_ptr<net::RpcConnection> connection_;
  uint64_t made_ = 0;       // connections so far; a failure on an earlier one is ignored
  bool reopening_ = false;  // since a break; connection_ may be there already
  bool closing_ = false;
  bool refused_ = false;  // the peer has rejected a hello, or a call after it
  struct Break {
    std::optional<Error> by;
    TimePoint at{};
  } break_;  // the last one, under repair while reopening_
  std::optional<TimePoint> healed_at_;
  Duration pause_{};  // before the attempt under way
  std::optional<Error> lost_;
  kj::Own<kj::PromiseFulfiller<void>> open_fulfiller_;  // resolved by the next connection
  kj::ForkedPromise<void> open_promise_ = nullptr;
  net::LogLimiter<2> limiter_;           // a link may break many times a second
  kj::Promise<void> retired_ = nullptr;  // destroys the previous connection in its own turn
  kj::Promise<void> mending_ = nullptr;
  kj::Promise<void> watched_ = nullptr;  // the end of the connection
};

template <class T, class Call>
kj::Promise<T> HealingConnection::untilAnswered(std::string_view doing, Call call,
                                                std::optional<TimePoint> failing_since) {
  if (!isOpen())
    return whenOpen().then([this, doing, call = std::move(call), failing_since]() mutable {
      return untilAnswered<T>(doing, std::move(call), failing_since);
    });
  return kj::evalNow([&call] { return net::bridgeErrors(call); })
      .catch_([this, doing, call, made = made_, begun = io_.clock().now(),
               failing_since](kj::Exception&& exception) mutable {
        return again<T>(doing, std::move(call), made, begun, failing_since, kj::mv(exception));
      });
}

template <class T, class Call>
kj::Promise<T> HealingConnection::again(std::string_view doing, Call call, uint64_t made,
                                        TimePoint begun, std::optional<TimePoint> failing_since,
                                        kj::Exception&& exception) {
  // A connection that this process has closed ends its calls with other errors than a break.
  const bool is_earlier = made != made_ || reopening_;
  const bool is_broken = isBroken(exception) || (is_earlier && !net::carriesError(exception));
  if (!is_broken) return net::toKj(net::toError(exception));
  const Error why = lostWhile(doing, exception);
  if (closing_) return net::toKj(why);
  if (rejoin_ == Duration{0}) {
    broke(made, why);
    return net::toKj(why);
  }
  if (!failing_since) failing_since = io_.clock().now();
  if (begun - *failing_since > steps_.failing_max) return net::toKj(why);
  broke(made, why);
  return untilAnswered<T>(doing, std::move(call), failing_since);
}

}  // namespace dtf::wire
