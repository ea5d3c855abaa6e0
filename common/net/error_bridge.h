#pragma once

// Conversions between Asio's error_code, errno, dtf::Error and kj::Exception; nothing else converts
// them. A dtf::Error crosses RPC as the text "dtf(bad_config): message", with its traits before it
// ("[job_ended] dtf(unavailable): message"), and is restored with code, traits and message.

#include <kj/async.h>
#include <kj/exception.h>

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "common/base/error.h"
#include "common/net/asio.h"

namespace dtf::net {

// `what` names the operation: "read from 127.0.0.1:5555". Returns DISCONNECTED if `ec` means that
// the peer is gone, including by keepalive or TCP_USER_TIMEOUT (which kj alone would call
// OVERLOADED); OVERLOADED if memory is short.
kj::Exception toKj(const error_code& ec, std::string_view what);

// Converts kUnavailable to DISCONNECTED, kDeadline to OVERLOADED, all others to FAILED; code,
// traits and message travel in the text.
kj::Exception toKj(const Error& error);

// Returns whether a dtf::Error is inside: the peer or this process reported a failure, as opposed
// to a broken connection.
bool carriesError(const kj::Exception& exception);

// Returns the dtf::Error inside, if any; else kUnavailable for DISCONNECTED, kDeadline for
// OVERLOADED, and kInternal otherwise. A peer may have written the text, so it passes through
// printable().
Error toError(const kj::Exception& exception);

// Returns "what: Connection refused (111)".
Error toError(ErrorCode code, std::string_view what, const error_code& ec);
Error toErrorFromErrno(ErrorCode code, std::string_view what, int errno_value);

// Returns the exception being handled in a catch block: a dtf::Error unchanged, an exception of
// Asio about missing descriptors as kUnavailable, others as toError() or kInternal.
Error currentError();

[[noreturn]] void throwAsKj(const Error& error);

// Runs `fn`, the body of an RPC method or of a continuation. A dtf::Error that leaves it keeps its
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
