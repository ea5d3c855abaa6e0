#pragma once

// Between the worlds of errors: Asio's error_code, errno, dtf::Error, kj::Exception. The only such
// place. A dtf::Error crosses RPC as the text "dtf(bad_config): message", with its traits before it
// ("[job_ended] dtf(unavailable): message"), and comes out again with code, traits and message.

#include <kj/async.h>
#include <kj/exception.h>

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "common/base/error.h"
#include "common/net/asio.h"

namespace dtf::net {

// `what` says what was tried: "read from 127.0.0.1:5555". DISCONNECTED when `ec` means that the
// peer is gone, also by keepalive or TCP_USER_TIMEOUT (kj alone would call that OVERLOADED);
// OVERLOADED when memory is short.
kj::Exception toKj(const error_code& ec, std::string_view what);

// kUnavailable becomes DISCONNECTED, kDeadline OVERLOADED, all others FAILED; code, traits and
// message travel in the text.
kj::Exception toKj(const Error& error);

// True when a dtf::Error is inside: the peer (or we) said what is wrong, as opposed to a connection
// that broke.
bool carriesError(const kj::Exception& exception);

// The dtf::Error inside, wherever it was thrown; else DISCONNECTED is kUnavailable, OVERLOADED is
// kDeadline, and anything else kInternal. A peer may have written the text: it is made printable().
Error toError(const kj::Exception& exception);

// "what: Connection refused (111)"
Error toError(ErrorCode code, std::string_view what, const error_code& ec);
Error toErrorFromErrno(ErrorCode code, std::string_view what, int errno_value);

// The exception being handled, in a catch block: a dtf::Error as it is, one of Asio that has no
// descriptor left as kUnavailable, others as toError() or kInternal.
Error currentError();

[[noreturn]] void throwAsKj(const Error& error);

// Runs `fn`, the body of an RPC method or of a continuation; a dtf::Error that leaves it keeps its
// code on the way to the peer (kj alone would flatten it to "std::exception: ..."). Use: `return
// bridgeErrors([&] { ... });`
template <class Fn>
decltype(auto) bridgeErrors(Fn&& fn) {
  try {
    return std::forward<Fn>(fn)();
  } catch (const Error& error) {
    throwAsKj(error);
  }
}

}  // namespace dtf::net
