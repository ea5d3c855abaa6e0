#pragma once

// What `dtf-launch check --network` measures, as values.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/cluster/address.h"

namespace dtf::launcher {

// Where a host takes what is measured.
struct ProbeAddress {
  std::string address;    // numeric
  std::string interface;  // "eth0"; empty: nobody knows
  uint16_t port = 0;
};

inline constexpr size_t kProbeAddressesMax = 8;  // of one host: that in the file, then others

// "Measure from where you are."
struct Measure {
  uint64_t number = 0;  // of this one; its answer has the same
  cluster::Address to;
  std::string identity;   // of whoever is to answer there
  std::string task;       // that its certificate names; empty: there are no keys
  bool is_brief = false;  // in half a second
};
struct Measured {
  uint64_t number = 0;
  double bytes_per_second = 0;
  double round_trip_us = 0;
  std::string problem;  // why there is neither; empty: there are both
};

// One row of the answer: from a host to an address of another.
struct NetworkRow {
  std::string from;
  std::string to;
  std::string address;  // of `to`
  std::string interface;
  bool is_files = false;  // what the cluster file's address is on `to` itself; else another one
  Measured measured;

  bool reached() const { return measured.problem.empty(); }
};

}  // namespace dtf::launcher
