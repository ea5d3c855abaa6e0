#pragma once

// The time that an exchange takes, predicted from its bytes and the links between the hosts. Pure.
//
// In a sync step each worker sends its gradient to the hosts of all shards; each host updates its
// shard, after its backup has the gradient where there are replicas; then it sends the parameters
// to all workers. These phases follow each other. A phase takes as long as the host that sends or
// receives the most for its link. A task sends nothing to tasks of its own host.

#include <cstddef>
#include <string>
#include <vector>

#include "launcher/network/measurement.h"

namespace dtf::launcher {

// The capacity of a host's link. Value type.
struct HostLink {
  std::string host;
  double out = 0;         // bytes a second
  double in = 0;          // likewise
  double round_trip = 0;  // seconds
};

// Returns the links of `hosts`, in their order: the best figure that each host reached, as the
// other end of a worse one may be slower.
// Errors: kUnavailable, with the problem, for a host without figures.
std::vector<HostLink> linksOf(const std::vector<std::string>& hosts,
                              const std::vector<NetworkRow>& rows);

// The bytes of one shard in a step. Value type.
struct ShardBytes {
  size_t host = 0;       // an index of a link
  double pushed = 0;     // by each worker
  double answered = 0;   // to each worker
  double backed_up = 0;  // to the host of the next shard
};

// Value type.
struct StepBytes {
  std::vector<size_t> workers;  // the host of each
  std::vector<ShardBytes> shards;
};

// Value type.
struct ExchangeCost {
  double seconds = 0;
  std::string busiest;  // the host whose link takes the longest; empty: nothing leaves a host
  double busiest_sends = 0, busiest_receives = 0;  // bytes
};

ExchangeCost costOf(const StepBytes& step, const std::vector<HostLink>& links);

// Returns the shares of the shards, in all 1, with which the slowest link takes the least time: in
// proportion to the links of hosts that only host shards. A worker's host sends the part of its
// gradient that it does not keep, so a smaller share costs it more bytes out, and fewer bytes in.
// `workers`, `shards`: the host of each.
std::vector<double> sharesByLink(const std::vector<size_t>& workers,
                                 const std::vector<size_t>& shards,
                                 const std::vector<HostLink>& links);

}  // namespace dtf::launcher
