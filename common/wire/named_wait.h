#pragma once

// Waits with a deadline and a name. While one lasts, the log contains its name every few seconds;
// at the deadline it fails with an error that has the same name.

#include <kj/async.h>
#include <kj/timer.h>
#include <kj/vector.h>

#include <functional>
#include <string>
#include <utility>

#include "common/base/clock.h"
#include "common/base/error.h"

namespace dtf::wire {

struct NamedWait {
  std::string what;     // "ps/1 (localhost:2222) to answer the hello"
  Duration deadline{};  // how long at most
  ErrorCode code = ErrorCode::kDeadline;
  Duration report_every = std::chrono::seconds(3);
};

// Fails after wait.deadline with wait.code and "waited 60 s for <what>"; logs `event=waiting
// for="<what>"` meanwhile. Loop-thread only; `timer` must outlive the promise.
kj::Promise<void> expireNamed(kj::Timer& timer, NamedWait wait);

template <class T>
kj::Promise<T> awaitNamed(kj::Timer& timer, NamedWait wait, kj::Promise<T> promise) {
  return promise.exclusiveJoin(
      expireNamed(timer, std::move(wait)).then([]() -> T { KJ_UNREACHABLE; }));
}

template <>
inline kj::Promise<void> awaitNamed(kj::Timer& timer, NamedWait wait, kj::Promise<void> promise) {
  return promise.exclusiveJoin(expireNamed(timer, std::move(wait)));
}

// Resolves when all promises have, or rejects with the first error. kj::joinPromises() rejects only
// when the last promise has ended, perhaps at its deadline. Loop-thread only.
kj::Promise<void> joinAll(kj::Vector<kj::Promise<void>> promises);

}  // namespace dtf::wire
