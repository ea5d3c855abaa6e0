#include "common/wire/named_wait.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/check.h"
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
  DTF_CHECK(!wait.what.empty());
  DTF_CHECK(wait.deadline > Duration{0} && wait.report_every > Duration{0});
  return waitOn(timer, std::move(wait), Duration{0});
}

kj::Promise<void> joinAll(kj::Vector<kj::Promise<void>> promises) {
  if (promises.size() == 1) return kj::mv(promises[0]);
  auto failed = kj::newPromiseAndFulfiller<void>();
  auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(failed.fulfiller));
  auto watched = kj::heapArrayBuilder<kj::Promise<void>>(promises.size());
  for (kj::Promise<void>& promise : promises) {
    // Evaluated eagerly, since kj runs a joined promise's continuations only when all are ready.
    watched.add(promise
                    .catch_([fulfiller](kj::Exception&& exception) {
                      (*fulfiller)->reject(kj::cp(exception));
                      kj::throwFatalException(kj::mv(exception));
                    })
                    .eagerlyEvaluate(nullptr));
  }
  return kj::joinPromises(watched.finish())
      .exclusiveJoin(kj::mv(failed.promise))
      .attach(std::move(fulfiller));
}

}  // namespace dtf::wire
