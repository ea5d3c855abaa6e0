#include "tests/sim/sim_loop.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/net/connector.h"
#include "common/net/error_bridge.h"
#include "common/net/message_stream.h"
#include "common/net/timer.h"

namespace dtf::sim {

// Between the loops of a process: in order, a moment later.
void SimLoop::post(std::function<void()> fn) {
  const Duration delay(static_cast<int64_t>(environment_.random.below(100'000)));
  last_post_ = std::max(last_post_ + Duration(1), environment_.scheduler.now() + delay);
  environment_.scheduler.at(last_post_, process_, std::move(fn));
}

struct SimLoop::Attempts {
  std::string address;
  net::ConnectOptions options;
  TimePoint deadline;
};

kj::Promise<kj::Own<net::MessageStream>> SimLoop::connect(std::string host, uint16_t port,
                                                          net::ConnectOptions options,
                                                          const net::Limits&,
                                                          std::shared_ptr<net::BufferPool>) {
  auto attempts = std::make_shared<Attempts>();
  attempts->address = host + ":" + std::to_string(port);
  attempts->deadline = clock().now() + options.deadline;
  attempts->options = std::move(options);
  return attempt(std::move(attempts));
}

kj::Promise<kj::Own<net::MessageStream>> SimLoop::attempt(std::shared_ptr<Attempts> attempts) {
  return environment_.network.connect(process_, timer_, attempts->address, attempts->options.kind)
      .then([this, attempts](kj::Maybe<Network::Stream>&& connected)
                -> kj::Promise<kj::Own<net::MessageStream>> {
        KJ_IF_MAYBE (stream, connected) return net::wrapStream(kj::mv(*stream));
        if (clock().now() >= attempts->deadline)
          net::throwAsKj(Error(ErrorCode::kUnavailable,
                               fmt::format("cannot reach {} at {}: last error: connection refused",
                                           attempts->options.peer_name, attempts->address)));
        const auto pause = static_cast<int64_t>(10 + environment_.random.below(490));
        return timer_.afterDelay(pause * kj::MILLISECONDS).then([this, attempts] {
          return attempt(attempts);
        });
      });
}

}  // namespace dtf::sim
