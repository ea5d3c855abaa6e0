#pragma once

// Who measures when: no host is in two measurements at once, which would measure the host. Pure.

#include <cstddef>
#include <vector>

namespace dtf::launcher {

struct HostPair {
  size_t from = 0;
  size_t to = 0;
  bool operator==(const HostPair&) const = default;
};

// Every ordered pair of `hosts` hosts once, those of a round at the same time. One host alone: with
// itself.
std::vector<std::vector<HostPair>> roundsOf(size_t hosts);

}  // namespace dtf::launcher
