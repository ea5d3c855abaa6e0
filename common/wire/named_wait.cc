#include "common/wire/named_wait.h"

#include <algorithm>

#include "common/base/log.h"
#include "common/net/error_bridge.h"
#include "common/net/timer.h"

namespace dtf::wire {

namespace {

kj::Promise<void> waitOn(kj::Timer& timer, NamedWait wait, Duration waited) {
  const Duration pause = std::min(wait.report_every, wait.deadline - waited);
  return timer.afterDelay(net::toKj(pause))
      .then([&timer, wait = std::move(wait), waited, pause]() mutable {
        waited += pause;
        if (waited >= wait.deadline)
          net::throwAsKj(Error(
              wait.code, fmt::format("waited {:.0f} s for {}", toSeconds(waited), wait.what)));
        log::info("event=waiting for=\"{}\" waited_s={:.0f}", wait.what, toSeconds(waited));
        return waitOn(timer, std::move(wait), waited);
      });
}

}  // namespace

kj::Promise<void> expireNamed(kj::Timer& timer, NamedWait wait) {
  return waitOn(timer, std::move(wait), Duration{0});
}

}  // namespace dtf::wire
