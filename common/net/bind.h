#pragma once

// A listening TCP socket on an address in text form.

#include <cstdint>
#include <string>

#include "common/net/asio.h"

namespace dtf::net {

class AsioEventPort;

// Listens on `host`, a name or an address ("localhost", "0.0.0.0", "::1"); port 0 lets the kernel
// choose. Loop thread.
// Blocks: on the name resolution of `host` if it is neither numeric nor localhost.
// Errors: kUnavailable if the port is in use (with the process that holds it), kPermission if the
// user may not use it, kBadConfig if `host` is no address of this machine, or an unknown name.
asio::ip::tcp::acceptor bindAndListen(AsioEventPort& port, const std::string& host,
                                      uint16_t tcp_port);

}  // namespace dtf::net
