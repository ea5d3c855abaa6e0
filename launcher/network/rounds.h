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

// Two rounds, however many hosts there are: in the first each host sends to the next one, in the
// second to the one after that. So each link is full in both directions, as in a step, and a host
// behind a slow link spoils the figures of no other: the best of a host's two figures is its own.
// Two hosts: one round.
std::vector<std::vector<HostPair>> linkRoundsOf(size_t hosts);

}  // namespace dtf::launcher
