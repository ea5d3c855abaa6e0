#pragma once

// What a person should know of a measured network. Pure.

#include <string>
#include <vector>

#include "launcher/network/measurement.h"

namespace dtf::launcher {

// Of the rates between the addresses in the file the best is what this network can do.
inline constexpr double kSlowBelow = 0.5;
// So much faster an interface has to be, from every host that reaches it, before it is called the
// better one: measurements of less than a second differ.
inline constexpr double kBetterBy = 1.5;

// Each a complete sentence: hosts and pairs below half of the best; hosts whose address in the file
// is on an interface that is slower than another one; a name that leads to loopback on its own
// host.
std::vector<std::string> networkWarnings(const std::vector<NetworkRow>& rows);

// Pairs that don't reach each other at the address in the file, and at which others they would:
// with them no job runs.
std::vector<std::string> unreachedPairs(const std::vector<NetworkRow>& rows);

}  // namespace dtf::launcher
