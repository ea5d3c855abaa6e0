#pragma once

// A listening TCP socket on an address as people write it.

#include <cstdint>
#include <string>

#include "common/net/asio.h"

namespace dtf::net {

class AsioEventPort;

// Listens on `host`, a name or an address ("localhost", "0.0.0.0", "::1"); port 0 lets the kernel
// choose. Loop thread.
// Blocks: on the name resolution of `host` when it is not numeric or localhost.
// Errors: kUnavailable when the port is in use (names who holds it), kPermission when it is not for
// us, kBadConfig when `host` is no address of this machine, or no name that anybody knows.
asio::ip::tcp::acceptor bindAndListen(AsioEventPort& port, const std::string& host,
                                      uint16_t tcp_port);

}  // namespace dtf::net
