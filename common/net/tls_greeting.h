#pragma once

// Internal to common/net: the client's side of opening a connection over TLS.

#include <kj/async.h>

#include "common/net/preamble.h"
#include "common/net/transport.h"

namespace dtf::net {

class AsioEventPort;

// Performs the handshake on a connected socket, sends the preamble and waits until the server
// repeats it: only then has the server accepted this side's certificate. Loop thread; a dropped
// promise closes the socket.
// Errors: kPermission with the reason if a certificate, or TLS itself, is rejected; else
// kUnavailable.
kj::Promise<Transport> greetSecurely(AsioEventPort& port, Transport transport, ConnectionKind kind);

}  // namespace dtf::net
