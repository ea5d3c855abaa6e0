#pragma once

// A network between workers and ps that turns bits now and then.

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <random>
#include <vector>

#include "tests/e2e/loopback_proxy.h"

namespace dtf::testing {

// Passes everything on, both ways, and turns one bit of it, behind the preamble of a connection,
// each time that a random number of bytes has passed: between 64 and `gap_bytes_max`, small and
// large ones alike, in one direction and then the other. The next one is turned after the
// connection of the one before has ended.
// Owns: a LoopbackProxy.
// Threads: turned() may be called from any, the rest from the owner's.
class TurningProxy {
 public:
  // `turns`: bits to be turned, then none.
  TurningProxy(std::vector<int> ps_ports, size_t turns, size_t gap_bytes_max, unsigned seed);

  // In the order of `ps_ports`.
  const std::vector<int>& ports() const { return proxy_.ports(); }
  size_t turned(Toward direction) const { return turned_.at(static_cast<size_t>(direction)); }
  size_t turned() const { return turned(Toward::kPs) + turned(Toward::kWorker); }

 private:
  class Connection;
  size_t nextGap();

  const size_t turns_;
  const size_t gap_bytes_max_;
  std::mt19937_64 random_;
  size_t gap_;
  Toward next_direction_ = Toward::kPs;
  std::array<std::atomic<size_t>, 2> turned_{};
  std::weak_ptr<Connection> turned_connection_;  // of the last turned bit, until it has ended
  LoopbackProxy proxy_;                          // last: its thread uses all of the above
};

}  // namespace dtf::testing
