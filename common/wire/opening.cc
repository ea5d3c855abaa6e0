#include "common/wire/opening.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/net/connector.h"
#include "common/net/error_bridge.h"
#include "common/net/timer.h"
#include "common/wire/named_wait.h"

namespace dtf::wire {

namespace {

using Connection = std::unique_ptr<net::RpcConnection>;

constexpr Duration kRetryPause = std::chrono::milliseconds(100);  // at most

// Returns whether the connection broke, and neither the peer nor this process rejected it.
bool broken(const kj::Exception& exception) {
  return exception.getType() == kj::Exception::Type::DISCONNECTED && !net::carriesError(exception);
}

// All attempts to open one connection. Lives as long as the promise.
class Attempts {
 public:
  Attempts(net::Loop& io, Opening opening, SayHello say_hello)
      : io_(io), opening_(std::move(opening)), say_hello_(std::move(say_hello)) {
    DTF_CHECK(say_hello_ != nullptr);
    DTF_CHECK(opening_.patience > Duration{0});
  }

  // The connector gives up first, with a better error. This deadline ends hellos without a reply.
  kj::Promise<Connection> run() {
    return attempt().exclusiveJoin(
        net::awakeDelay(io_.timer(), opening_.patience + kRetryPause).then([this]() -> Connection {
          net::throwAsKj(Error(ErrorCode::kUnavailable, timeoutText()));
        }));
  }

 private:
  kj::Promise<Connection> attempt() {
    return io_
        .connect(opening_.address.host, opening_.address.port, connectOptions(), opening_.limits,
                 opening_.pool)
        .then([this](kj::Own<net::MessageStream> stream) { return greet(kj::mv(stream)); })
        .catch_([this](kj::Exception&& exception) -> kj::Promise<Connection> {
          if (!broken(exception)) kj::throwFatalException(kj::mv(exception));
          last_failure_ = net::toError(exception).message();
          const Duration pause = std::exchange(pause_, std::min(2 * pause_, kRetryPause));
          return io_.timer().afterDelay(net::toKj(pause)).then([this] { return attempt(); });
        });
  }

  // This destroys the previous connection, in a turn that runs none of its promises.
  kj::Promise<Connection> greet(kj::Own<net::MessageStream> stream) {
    connection_ = std::make_unique<net::RpcConnection>(kj::mv(stream),
                                                       net::RpcOptions{.peer = opening_.peer});
    return awaitNamed(
               io_.timer(),
               {opening_.peer + " to answer the hello", opening_.patience, ErrorCode::kUnavailable},
               say_hello_(*connection_))
        .exclusiveJoin(unanswered())
        .then([this] {
          DTF_CHECK(connection_ != nullptr);
          return std::move(connection_);
        });
  }

  // A peer that froze while it held this connection may have been replaced since.
  kj::Promise<void> unanswered() {
    if (opening_.answer_max == Duration{0}) return kj::NEVER_DONE;
    return net::awakeDelay(io_.timer(), opening_.answer_max).then([] {
      kj::throwFatalException(net::toKj(net::asio::error::timed_out, "no answer to the hello"));
    });
  }

  net::ConnectOptions connectOptions() const {
    net::ConnectOptions options;
    options.kind = opening_.kind;
    options.peer_name = opening_.peer;
    options.certified_task = opening_.task;
    options.deadline = opening_.patience;
    options.on_waiting = [what = opening_.peer + " to listen", told = opening_.on_waiting](
                             const std::string& last_error, Duration waited) {
      log::info("event=waiting for=\"{}\" waited_s={:.0f} last_error=\"{}\"", what,
                toSeconds(waited), last_error);
      if (told) told(what, waited);
    };
    return options;
  }

  std::string timeoutText() const {
    std::string text = fmt::format("waited {:.0f} s for {} to answer the hello",
                                   toSeconds(opening_.patience), opening_.peer);
    if (!last_failure_.empty()) text += ", last error: " + last_failure_;
    return text;
  }

  net::Loop& io_;
  const Opening opening_;
  const SayHello say_hello_;
  Connection connection_;                           // on which the hello is under way
  Duration pause_ = std::chrono::milliseconds(10);  // before the next attempt
  std::string last_failure_;
};

}  // namespace

kj::Promise<Connection> openConnection(net::Loop& io, Opening opening, SayHello say_hello) {
  auto attempts = kj::heap<Attempts>(io, std::move(opening), std::move(say_hello));
  auto promise = attempts->run();
  return promise.attach(kj::mv(attempts));
}

}  // namespace dtf::wire
