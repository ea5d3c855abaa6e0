#pragma once

// Parses and compares addresses, "host:port", of CLUSTER.yaml and command lines.

#include <string>
#include <string_view>

#include "common/cluster/spec.h"

namespace dtf::cluster {

// Parses "host:port", "host:auto" or "[ipv6]:port" into `address`. Returns an empty string, or the
// mistake in `text`; `address` then keeps its value. The host is not looked up.
std::string parseAddress(std::string_view text, Address& address);

// Does the same for a port: a number, or "auto", which is 0.
inline constexpr uint32_t kPortMax = 65535;
std::string parsePort(std::string_view text, uint16_t& port);

// Returns a key that is equal for two addresses that can't both be bound on one host: letter case
// and the spellings of loopback are folded. Empty when the port is `auto`, which never collides.
std::string bindKey(const Address& address);

// Returns a key that is equal for two spellings of one host: letter case and the spellings of
// loopback are folded. No name is looked up.
std::string hostKey(std::string_view host);

// Whether a numeric address without a port, as "127.0.0.1" or "::1", is loopback.
bool isLoopback(std::string_view host);

// Returns the error message of a task that refuses to listen at `address`.
std::string refusalToListen(std::string_view address);
// Returns the same for the address of its metrics.
std::string refusalToShow(std::string_view address);

}  // namespace dtf::cluster
