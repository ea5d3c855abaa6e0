#pragma once

#include <cstdint>
#include <string>

namespace dtf::net {

// Returns the processes of this host with a TCP socket bound to local `port`: "pid 4242 (psd)",
// several joined by ", "; empty if there is none, or it belongs to another user. Reads /proc, which
// takes milliseconds: for error messages only.
std::string portHolder(uint16_t port);

}  // namespace dtf::net
