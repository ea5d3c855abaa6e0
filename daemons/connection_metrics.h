#pragma once

// What has passed on the connections that others have made to a task, by what they are for.

#include <string>
#include <utility>
#include <vector>

#include "common/base/metrics.h"
#include "daemons/connection_set.h"

namespace dtf::daemons {

// Taken on the loop of the connections, to be carried to another.
struct ConnectionLoad {
  size_t connections = 0;
  net::Traffic traffic;
};
ConnectionLoad loadOf(const ConnectionSet& connections);

// By kind, "control".
std::vector<Metric> connectionMetrics(
    const std::vector<std::pair<std::string, ConnectionLoad>>& loads);

}  // namespace dtf::daemons
