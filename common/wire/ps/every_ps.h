#pragma once

// Requests to all ps of a job at once, each with a deadline and a name. The calls of a checkpoint
// consist of them (checkpoint_calls.h, shard_calls.h).

#include <kj/async.h>
#include <kj/vector.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/net/error_bridge.h"
#include "common/wire/named_wait.h"
#include "common/wire/ps/rpc_calls.h"

namespace dtf::wire {

// The deadline of a request for which a live ps has no file to read or write.
inline constexpr double kQuestionSeconds = 15;

// The result of a request without one.
struct Nothing {};

template <class Request>
kj::Promise<Nothing> sent(Request&& request) {
  return request.send().then([](auto&&) { return Nothing{}; });
}

template <class T>
kj::Promise<void> whenDone(kj::Promise<T> promise) {
  return promise.then([](auto&&) {});
}

// Adds the name of the ps to the error of a connection that breaks.
template <class T>
kj::Promise<T> named(kj::Promise<T> promise, const std::string& ps, const std::string& doing) {
  return promise.catch_([ps, doing](kj::Exception&& exception) -> kj::Promise<T> {
    const Error error = net::toError(exception);
    const bool broken = exception.getType() == kj::Exception::Type::DISCONNECTED;
    if (!broken || net::carriesError(exception)) net::throwAsKj(error);
    net::throwAsKj(Error(ErrorCode::kUnavailable,
                         "lost " + ps + ", which was to " + doing + ": " + error.message()));
  });
}

// Returns the reply of one ps to a request, which is due within `seconds`.
template <class T>
kj::Promise<T> fromPs(ControlCalls& calls, uint32_t ps_task, const std::string& doing,
                      double seconds, kj::Promise<T> answer) {
  const std::string ps = calls.host(ps_task).name();
  return awaitNamed(calls.loop().timer(), {ps + " to " + doing, fromSeconds(seconds)},
                    named(kj::mv(answer), ps, doing));
}

// Calls `call(i)` for every ps at once and waits for all replies, each for `seconds` at most.
template <class T>
kj::Promise<std::vector<T>> fromEveryPs(ControlCalls& calls, const std::string& doing,
                                        double seconds,
                                        const std::function<kj::Promise<T>(uint32_t)>& call) {
  auto results = std::make_shared<std::vector<T>>(calls.psTasks());
  kj::Vector<kj::Promise<void>> promises;
  for (uint32_t i = 0; i < calls.psTasks(); ++i)
    promises.add(fromPs(calls, i, doing, seconds, call(i)).then([results, i](T result) {
      (*results)[i] = std::move(result);
    }));
  return calls.guard(joinAll(kj::mv(promises))).then([results] { return std::move(*results); });
}

}  // namespace dtf::wire
