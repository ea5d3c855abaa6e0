#pragma once

// Metrics of the traffic on the connections to a task, by kind of connection.

#include <string>
#include <utility>
#include <vector>

#include "common/base/metrics.h"
#include "daemons/connection_set.h"

namespace dtf::daemons {

// Read on the loop of the connections; may be passed to another loop.
struct ConnectionLoad {
  size_t connections = 0;
  net::Traffic traffic;
};
ConnectionLoad loadOf(const ConnectionSet& connections);

// The kinds are labels, such as "control".
std::vector<Metric> connectionMetrics(
    const std::vector<std::pair<std::string, ConnectionLoad>>& loads);

}  // namespace dtf::daemons
