#pragma once

// The services of a loop for code that runs on it: the time, a later turn, a connection. Links and
// services depend only on this, so the same code runs on Asio in a daemon and on virtual time in a
// simulation.

#include <kj/async.h>
#include <kj/timer.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "common/base/clock.h"

namespace dtf::net {

class BufferPool;
class MessageStream;
class Polled;
struct ConnectOptions;
struct Limits;

template <class T>
inline constexpr bool kIsPromise = false;
template <class T>
inline constexpr bool kIsPromise<kj::Promise<T>> = true;

template <class P>
using PromiseValue = decltype(std::declval<P>().wait(std::declval<kj::WaitScope&>()));

// Ends the wait when it is destroyed.
class DescriptorWatch {
 public:
  virtual ~DescriptorWatch() noexcept(false) = default;
};

// Threads: loop-thread only, except post() and clock().
// Blocks: never.
class Loop {
 public:
  virtual ~Loop() = default;

  virtual const Clock& clock() const = 0;
  virtual kj::Timer& timer() = 0;

  // Runs `fn` on the loop, later, in the order of one thread's posts. `fn` may fulfil kj promises.
  virtual void post(std::function<void()> fn) = 0;

  // Looks for the work of `polled` whenever it polls, until removePolled(). Returns false if it
  // never polls, but sleeps until something is ready: then nothing is added.
  virtual bool addPolled(Polled& /*polled*/) { return false; }
  virtual void removePolled(Polled& /*polled*/) {}

  // Calls `ready` each time after which `fd` is readable, until the result is destroyed. The
  // descriptor stays the caller's, and outlives the result. Null: this loop waits for no
  // descriptors.
  virtual std::unique_ptr<DescriptorWatch> watch(int /*fd*/, std::function<void()> /*ready*/) {
    return nullptr;
  }

  // Connects to a peer that may not have started yet, like connectToPeer() (connector.h), with the
  // same errors and with this loop's credentials. `pool` is for large messages that arrive.
  virtual kj::Promise<kj::Own<MessageStream>> connect(std::string host, uint16_t port,
                                                      ConnectOptions options, const Limits& limits,
                                                      std::shared_ptr<BufferPool> pool) = 0;
};

}  // namespace dtf::net
