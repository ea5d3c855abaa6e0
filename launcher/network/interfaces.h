#pragma once

// The addresses of this host that others may reach.

#include <string>
#include <vector>

namespace dtf::launcher {

struct InterfaceAddress {
  std::string interface;
  std::string address;  // numeric
};

// Of interfaces that are up, in the kernel's order; neither loopback nor link-local.
// Errors: kUnavailable when the kernel doesn't say.
std::vector<InterfaceAddress> interfaceAddresses();

// Which interface has `address`; empty: none.
std::string interfaceOf(const std::string& address);

}  // namespace dtf::launcher
