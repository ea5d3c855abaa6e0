#pragma once

// Metrics of the traffic on the connections to a task, by kind of connection.

#include <string>
#include <utility>
#include <vector>

#include "common/base/metrics.h"
#include "common/wire/connection_set.h"

namespace dtf::serving {

// The kinds are labels, such as "control".
std::vector<Metric> connectionMetrics(
    const std::vector<std::pair<std::string, wire::ConnectionLoad>>& loads);

}  // namespace dtf::serving
