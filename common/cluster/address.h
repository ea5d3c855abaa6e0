#pragma once

// "host:port" as CLUSTER.yaml and the command line write it.

#include <string>
#include <string_view>

#include "common/cluster/spec.h"

namespace dtf::cluster {

// Reads "host:port", "host:auto" or "[ipv6]:port" into `address`. Returns an empty string, or what
// is wrong with `text`; `address` then keeps its value. The host is not looked up.
std::string parseAddress(std::string_view text, Address& address);

// Likewise a port: its number, or "auto", which is 0.
inline constexpr uint32_t kPortMax = 65535;
std::string parsePort(std::string_view text, uint16_t& port);

// Equal for two addresses that can't both be bound on one host: letter case and the spellings of
// loopback are folded. Empty when the port is `auto`, which never collides.
std::string bindKey(const Address& address);

// Equal for two spellings of one host, as far as can be told without looking them up.
std::string hostKey(std::string_view host);

// Of a numeric address without its port: "127.0.0.1", "::1".
bool isLoopback(std::string_view host);

// Why a task doesn't listen at `address`, in words.
std::string refusalToListen(std::string_view address);
// Likewise, for its metrics.
std::string refusalToShow(std::string_view address);

}  // namespace dtf::cluster
