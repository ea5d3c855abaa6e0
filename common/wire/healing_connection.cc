#include "common/wire/healing_connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/net/asio.h"
#include "common/net/timer.h"

namespace dtf::wire {

namespace {

constexpr Duration kReopenPause = std::chrono::milliseconds(100);
// A connection that ends sooner was closed by the peer, not by the network.
constexpr Duration kShortLife = std::chrono::milliseconds(10);
// Time for the attempt under way to end first, with its own error.
constexpr Duration kLastWord = std::chrono::seconds(1);

enum Line { kBroken, kHealed };

}  // namespace

bool isBroken(const kj::Exception& exception) {
  return exception.getType() == kj::Exception::Type::DISCONNECTED && !net::carriesError(exception);
}

HealingConnection::HealingConnection(net::Loop& io, Opening opening, Duration rejoin,
                                     Duration answer_max, Steps steps)
    : io_(io),
      opening_(std::move(opening)),
      rejoin_(rejoin),
      answer_max_(answer_max),
      steps_(std::move(steps)) {
  DTF_CHECK(steps_.say_hello != nullptr);
  DTF_CHECK(rejoin_ >= Duration{0} && answer_max_ > Duration{0});
}

kj::Promise<void> HealingConnection::open(std::string_view doing) {
  DTF_CHECK(made_ == 0);
  return openConnection(io_, opening_, steps_.say_hello)
      .then([this](std::unique_ptr<net::RpcConnection> connection) {
        take(std::move(connection));
        if (steps_.on_open) steps_.on_open();
      })
      .catch_([this, doing](kj::Exception&& e) {
        net::throwAsKj(isBroken(e) ? lostWhile(doing, e) : net::toError(e));
      });
}

void HealingConnection::take(std::unique_ptr<net::RpcConnection> connection) {
  DTF_CHECK(connection != nullptr && connection_ == nullptr);
  connection_ = std::move(connection);
  ++made_;
}

// Destroys the connection in a turn of its own: this turn may run one of its promises.
void HealingConnection::retire() {
  retired_ = kj::evalLater([] {}).attach(std::move(connection_)).eagerlyEvaluate(nullptr);
}

Error HealingConnection::lostWhile(std::string_view doing, const kj::Exception& exception) const {
  return Error(ErrorCode::kUnavailable, fmt::format("lost {} while {}: {}", opening_.peer, doing,
                                                    net::toError(exception).message()));
}

kj::Promise<void> HealingConnection::whenOpen() {
  DTF_CHECK(made_ > 0);  // open() came first
  if (lost_) return net::toKj(*lost_);
  if (!open_fulfiller_) {
    auto open = kj::newPromiseAndFulfiller<void>();
    open_fulfiller_ = kj::mv(open.fulfiller);
    open_promise_ = open.promise.fork();
  }
  return open_promise_.addBranch();
}

// Handles the break of connection number `made`. The break of an earlier one is known already.
void HealingConnection::broke(uint64_t made, const Error& why) {
  if (made != made_ || reopening_ || closing_ || lost_) return;
  reopening_ = true;
  break_.by = why;
  break_.at = io_.clock().now();
  retire();
  if (rejoin_ == Duration{0}) return end(why);
  if (const auto suppressed = limiter_.allow(kBroken, break_.at))
    log::info("event=link_broken peer=\"{}\" reason=\"{}\" suppressed={}", opening_.peer,
              why.message(), *suppressed);
  if (steps_.on_broken) steps_.on_broken(why);
  mending_ =
      reopen()
          .exclusiveJoin(net::awakeDelay(io_.timer(), rejoin_ + kLastWord).then([this] {
            net::throwAsKj(Error(ErrorCode::kUnavailable,
                                 fmt::format("no connection for {:.0f} s", toSeconds(rejoin_))));
          }))
          .eagerlyEvaluate([this](kj::Exception&& exception) {
            const Error last = net::toError(exception);
            if (refused_) return end(last);
            end(Error(ErrorCode::kUnavailable,
                      fmt::format("{}; {}", break_.by->message(), last.message())));
          });
}

kj::Promise<void> HealingConnection::noteRefusal(kj::Promise<void> asked) {
  return asked.catch_([this](kj::Exception&& exception) {
    refused_ = !isBroken(exception);
    kj::throwFatalException(kj::mv(exception));
  });
}

// Delays the next attempt if the peer closes every connection right after its reply to the hello.
kj::Promise<void> HealingConnection::pause() {
  const bool lived = !healed_at_ || io_.clock().now() - *healed_at_ >= kShortLife;
  pause_ = lived ? Duration{0} : std::min(std::max(2 * pause_, kShortLife), kReopenPause);
  if (pause_ == Duration{0}) return kj::READY_NOW;
  return io_.timer().afterDelay(net::toKj(pause_));
}

// Connects again, and resolves when hello and after_reopening are done.
kj::Promise<void> HealingConnection::reopen() {
  return pause()
      .then([this]() -> kj::Promise<void> {
        if (!steps_.before_reopening) return kj::READY_NOW;
        return steps_.before_reopening();
      })
      .then([this] {
        Opening opening = opening_;
        opening.patience = rejoin_;
        opening.answer_max = answer_max_;
        return openConnection(io_, std::move(opening), [this](net::RpcConnection& connection) {
          return noteRefusal(steps_.say_hello(connection).catch_([this](kj::Exception&& exception) {
            // The peer has accepted this process before, so another one answers at its address, as
            // a ps of another job. The right one may come back there.
            const Error error = net::toError(exception);
            if (error.code() != ErrorCode::kBadConfig) kj::throwFatalException(kj::mv(exception));
            if (const auto suppressed = limiter_.allow(kBroken, io_.clock().now()))
              log::warning("event=another_answers peer=\"{}\" reason=\"{}\" suppressed={}",
                           opening_.peer, error.message(), *suppressed);
            kj::throwFatalException(
                net::toKj(net::asio::error::connection_refused, error.message()));
          }));
        });
      })
      .then([this](std::unique_ptr<net::RpcConnection> connection) -> kj::Promise<void> {
        take(std::move(connection));
        if (!steps_.after_reopening) return kj::READY_NOW;
        return noteRefusal(steps_.after_reopening());
      })
      .then([this] { reopened(); })
      .catch_([this](kj::Exception&& exception) -> kj::Promise<void> {
        if (!isBroken(exception)) return kj::mv(exception);
        if (connection_ != nullptr) retire();
        return io_.timer().afterDelay(net::toKj(kReopenPause)).then([this] { return reopen(); });
      });
}

void HealingConnection::reopened() {
  DTF_CHECK(reopening_ && connection_ != nullptr);
  if (lost_) return;  // by end(), meanwhile
  reopening_ = false;
  const TimePoint now = io_.clock().now();
  healed_at_ = now;
  if (const auto suppressed = limiter_.allow(kHealed, now))
    log::warning("event=link_healed peer=\"{}\" away_s={:.1f} reason=\"{}\" suppressed={}",
                 opening_.peer, toSeconds(now - break_.at), break_.by->message(), *suppressed);
  if (steps_.on_open) steps_.on_open();
  if (open_fulfiller_) std::exchange(open_fulfiller_, nullptr)->fulfill();
}

void HealingConnection::watch() {
  watched_ = connection_->onDisconnect()
                 .then([this] {
                   giveUp(Error(ErrorCode::kUnavailable,
                                fmt::format("lost {}: it closed the connection", opening_.peer)));
                 })
                 .eagerlyEvaluate([this](kj::Exception&& e) { giveUp(net::toError(e)); });
}

void HealingConnection::end(const Error& error) {
  if (lost_) return;
  lost_ = error;
  reopening_ = true;
  if (open_fulfiller_) std::exchange(open_fulfiller_, nullptr)->reject(net::toKj(error));
  if (!closing_ && steps_.on_lost) steps_.on_lost(error);
}

}  // namespace dtf::wire
