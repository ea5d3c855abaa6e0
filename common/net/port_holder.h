#pragma once

#include <cstdint>
#include <string>

namespace dtf::net {

// Which process of this host has a TCP socket bound to local `port`: "pid 4242 (psd)", several
// joined by ", "; empty when nobody has, or it belongs to another user. Reads /proc; takes
// milliseconds, for error messages only.
std::string portHolder(uint16_t port);

}  // namespace dtf::net
