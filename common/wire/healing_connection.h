#pragma once

// A connection that is made again when it breaks, and what was asked and not answered on it, asked
// again on the next one.

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

// Whether a call failed because its connection broke, rather than by its peer's word or our own.
bool isBroken(const kj::Exception& exception);

// The peer is away for as long as it answers no hello: that its socket takes a connection says
// nothing, for a launcher may hold the socket of a process that is gone.
//
// Owns: the connection.
// Borrows: `io` (must outlive this).
// Threads: loop-thread only.
// Errors: as promises. What the peer answers is final. kUnavailable when it has not answered a
// hello in time, with what broke and how the last attempt ended.
class HealingConnection {
 public:
  struct Steps {
    SayHello say_hello;
    // Before a connection that broke is made again; may be null.
    std::function<kj::Promise<void>()> before_reopening{};
    // On each connection but the first, before anything that waits is asked again; may be null.
    std::function<kj::Promise<void>()> after_reopening{};
    std::function<void()> on_open{};  // each time, behind after_reopening; may be null
    std::function<void(const Error& why)> on_broken{};  // each time; may be null
    // From the first break of a call to the last attempt at it: when that breaks too, the call
    // fails, though hellos are answered. For calls without a deadline of their own. An attempt that
    // is under way then may take its time: it ends when its own deadline says so.
    Duration failing_max = Duration::max();
    std::function<void(const Error&)> on_lost{};  // once: it is not made again; may be null
  };
  // `rejoin`: from a break to the answer of the next hello; 0: a break is final. `answer_max`: for
  // one hello, of those after a break.
  HealingConnection(net::Loop& io, Opening opening, Duration rejoin, Duration answer_max,
                    Steps steps);

  // Once. The peer may start later than we do: see opening.patience.
  kj::Promise<void> open(std::string_view doing);

  bool isOpen() const { return connection_ != nullptr && !reopening_; }
  // Since when it is broken; nullopt while it isn't.
  std::optional<TimePoint> brokenSince() const {
    return reopening_ ? std::optional(break_.at) : std::nullopt;
  }
  // While isOpen(), or within after_reopening.
  net::RpcConnection& connection() { return *connection_; }

  // The answer of `call`, which is made on the connection, and again on the next one for as long as
  // the connection breaks before the answer. After open(). `doing`, a literal, is for an error:
  // "pulling".
  template <class T, class Call>
  kj::Promise<T> untilAnswered(std::string_view doing, Call call) {
    return untilAnswered<T>(doing, std::move(call), std::nullopt);
  }

  // The peer is not heard any more: what a break does, with that reason.
  // While open() is under way it has no effect: that has a patience of its own.
  void giveUp(const Error& why) {
    if (made_ > 0) broke(made_, why);
  }
  // Gives the connection up as soon as the peer closes it, also while no call is under way. To be
  // called on each connection anew.
  void watch();
  // It is not made again, and who waits fails with `error`.
  void end(const Error& error);
  // A break is the normal end from now on, or a call's error.
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
  uint64_t made_ = 0;       // connections so far: a promise of an earlier one says nothing of this
  bool reopening_ = false;  // since a break; connection_ may be there already
  bool closing_ = false;
  bool refused_ = false;  // the peer has answered that it wants nothing of us
  struct Break {
    std::optional<Error> by;
    TimePoint at{};
  } break_;  // the last one, which is being mended while reopening_
  std::optional<TimePoint> healed_at_;
  Duration pause_{};  // before the attempt under way
  std::optional<Error> lost_;
  kj::Own<kj::PromiseFulfiller<void>> open_fulfiller_;  // of those who wait for the next connection
  kj::ForkedPromise<void> open_promise_ = nullptr;
  net::LogLimiter<2> limiter_;           // a link may break many times a second
  kj::Promise<void> retired_ = nullptr;  // the connection before, which ends in a turn of its own
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
  return call().catch_([this, doing, call, made = made_, begun = io_.clock().now(),
                        failing_since](kj::Exception&& exception) mutable {
    return again<T>(doing, std::move(call), made, begun, failing_since, kj::mv(exception));
  });
}

template <class T, class Call>
kj::Promise<T> HealingConnection::again(std::string_view doing, Call call, uint64_t made,
                                        TimePoint begun, std::optional<TimePoint> failing_since,
                                        kj::Exception&& exception) {
  // A connection that was given up ends its calls in its own words.
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
