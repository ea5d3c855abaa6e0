#pragma once

// Inside common/net: the client's way into a connection over TLS.

#include <kj/async.h>

#include "common/net/preamble.h"
#include "common/net/transport.h"

namespace dtf::net {

class AsioEventPort;

// Shakes hands on a connected socket, sends the preamble and awaits that the server repeats it:
// only then has it taken this side's certificate. Loop thread; a dropped promise closes the socket.
// Errors: kPermission in words when a certificate, or TLS itself, is refused; kUnavailable else.
kj::Promise<Transport> greetSecurely(AsioEventPort& port, Transport transport, ConnectionKind kind);

}  // namespace dtf::net
