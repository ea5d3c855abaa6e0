#pragma once

// Internal to common/net: records the calls served by a connection and their outcomes in the call
// log (common/base/call_log.h): "call 0xf5556866fad110b2 0 ok". Empty if the call log is not
// compiled in.

#include <capnp/any.h>
#include <kj/exception.h>

#include <cstdint>
#include <map>
#include <utility>

#include "common/base/call_log.h"

namespace dtf::net {

#ifdef DTF_FAILPOINTS_COMPILED_IN

// Sees each message of one connection.
// Threads: loop-thread only. Blocks: on the call log's file, for new entries.
// Errors: none; it ignores messages that don't belong to the RPC protocol.
class CallObserver {
 public:
  template <class Message>
  void received(Message& message) {
    if (callLogWanted()) passOver([&] { receivedBody(message.getBody()); });
  }
  template <class Message>
  void sent(Message& message) {
    if (callLogWanted()) passOver([&] { sentBody(message.getBody().asReader()); });
  }

 private:
  // A message with broken pointers ends its connection when the RPC system reads it.
  template <class Fn>
  static void passOver(Fn&& look) {
    kj::runCatchingExceptions(std::forward<Fn>(look));
  }
  void receivedBody(capnp::AnyPointer::Reader body);
  void sentBody(capnp::AnyPointer::Reader body);

  using Method = std::pair<uint64_t, uint16_t>;  // interface id, method
  std::map<uint32_t, Method> served_;            // by the caller's question
};

#else

class CallObserver {
 public:
  template <class Message>
  void received(Message&) {}
  template <class Message>
  void sent(Message&) {}
};

#endif

}  // namespace dtf::net
