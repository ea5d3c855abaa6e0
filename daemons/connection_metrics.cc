#include "daemons/connection_metrics.h"

namespace dtf::daemons {

ConnectionLoad loadOf(const ConnectionSet& connections) {
  return {connections.size(), connections.traffic()};
}

std::vector<Metric> connectionMetrics(
    const std::vector<std::pair<std::string, ConnectionLoad>>& loads) {
  Metric open{"dtf_connections", "Connections that others have to this task, by kind.",
              Metric::Kind::kGauge};
  Metric received{"dtf_received_bytes_total",
                  "Bytes that have come on these connections; gradients in shared memory do not.",
                  Metric::Kind::kCounter};
  Metric sent{"dtf_sent_bytes_total",
              "Bytes that have left on these connections; parameters in shared memory do not.",
              Metric::Kind::kCounter};
  for (const auto& [kind, load] : loads) {
    const MetricLabels labels = {{"kind", kind}};
    open.values.push_back({static_cast<double>(load.connections), labels});
    received.values.push_back({static_cast<double>(load.traffic.received), labels});
    sent.values.push_back({static_cast<double>(load.traffic.sent), labels});
  }
  return {open, received, sent};
}

}  // namespace dtf::daemons
