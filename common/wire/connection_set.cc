#include "common/wire/connection_set.h"

#include <fmt/format.h>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/net/error_bridge.h"
#include "common/net/timer.h"

namespace dtf::wire {

struct ConnectionSet::Served {
  ConnectionRef ref = std::make_shared<ConnectionHandle>();
  std::unique_ptr<net::RpcConnection> connection;
  kj::Promise<void> watched = nullptr;
  kj::Promise<void> hello_deadline = nullptr;
  bool closing = false;

  ~Served() { ref->connection = nullptr; }
};

ConnectionSet::ConnectionSet(net::Loop& loop, OnClosed on_closed, uint64_t calls_bytes_max)
    : loop_(loop),
      on_closed_(std::move(on_closed)),
      calls_bytes_max_(calls_bytes_max),
      self_(std::make_shared<ConnectionSet*>(this)) {
  DTF_CHECK(on_closed_ != nullptr && calls_bytes_max_ > 0);
}

ConnectionSet::~ConnectionSet() {
  *self_ = nullptr;
}

void ConnectionSet::logRefusal(Refusal kind, const std::string& peer, const std::string& reason) {
  if (const auto suppressed = limiter_.allow(kind, loop_.clock().now()))
    log::warning("event=connection_refused peer=\"{}\" reason=\"{}\" suppressed={}", peer, reason,
                 *suppressed);
}

// The connection is destroyed from a turn of its own, never from one of its own promises.
void ConnectionSet::close(Position position) {
  if ((*position)->closing) return;
  (*position)->closing = true;
  net::RpcConnection& connection = *(*position)->connection;
  if (const std::string reason = connection.stream().violation(); !reason.empty())
    logRefusal(kViolation, connection.peer(), reason);
  on_closed_(&connection);
  loop_.post([self = self_, position] {
    if (*self == nullptr) return;
    (*self)->ended_ += (*position)->connection->stream().traffic();
    (*self)->connections_.erase(position);
  });
}

net::Traffic ConnectionSet::traffic() const {
  net::Traffic traffic = ended_;
  for (const auto& served : connections_) traffic += served->connection->stream().traffic();
  return traffic;
}

void ConnectionSet::checkCaller(const ConnectionHandle& handle, TaskId caller) {
  DTF_CHECK(handle.connection != nullptr);
  const std::string certified = handle.connection->stream().certifiedPeer();
  if (certified.empty() || certified == caller.name()) return;
  const std::string reason =
      fmt::format("it says that it is {}, but its certificate is for {}", caller.name(), certified);
  logRefusal(kOtherTask, handle.connection->peer(), reason);
  throw Error(
      ErrorCode::kPermission,
      fmt::format("the certificate of {} is for {}, not for {}: each task needs its own key",
                  handle.connection->peer(), certified, caller.name()));
}

void ConnectionSet::greet(ConnectionHandle& handle, const Caller& caller) {
  DTF_CHECK(handle.connection != nullptr);
  handle.greeted = true;
  handle.caller = caller;
  for (auto at = connections_.begin(); at != connections_.end(); ++at) {
    const ConnectionHandle& other = *(*at)->ref;
    const bool is_earlier = other.greeted && other.caller.task == caller.task &&
                            other.caller.incarnation == caller.incarnation &&
                            other.caller.connection < caller.connection;
    if (is_earlier) close(at);
  }
}

void ConnectionSet::serve(kj::Own<net::MessageStream> stream, std::string peer,
                          const MakeBootstrap& make_bootstrap) {
  connections_.push_back(std::make_unique<Served>());
  const Position position = std::prev(connections_.end());
  Served& served = **position;
  served.connection = std::make_unique<net::RpcConnection>(
      kj::mv(stream),
      [&](net::RpcConnection& connection) {
        served.ref->connection = &connection;
        served.ref->set = this;
        return make_bootstrap(served.ref);
      },
      net::RpcOptions{.peer = peer, .calls_bytes_max = calls_bytes_max_});
  served.watched = served.connection->onDisconnect()
                       .then([this, position] { close(position); },
                             [this, position](kj::Exception&&) { close(position); })
                       .eagerlyEvaluate(nullptr);
  served.hello_deadline =
      loop_.timer()
          .afterDelay(net::toKj(kHelloDeadline))
          // A hello may be unread only because this loop was late, as while it receives a model of
          // gigabytes: timers are served before sockets.
          .then([this] { return loop_.timer().afterDelay(net::toKj(kHelloGrace)); })
          .then([this, position, peer = std::move(peer)] {
            if ((*position)->ref->greeted) return;
            if (!(*position)->ref->visitor)
              logRefusal(kNoHello, peer,
                         fmt::format("no hello within {:.0f} s", toSeconds(kHelloDeadline)));
            close(position);
          })
          .eagerlyEvaluate(nullptr);
}

ConnectionLoad loadOf(const ConnectionSet& connections) {
  return {connections.size(), connections.traffic()};
}

}  // namespace dtf::wire
