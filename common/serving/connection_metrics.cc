#include "common/serving/connection_metrics.h"

namespace dtf::serving {

std::vector<Metric> connectionMetrics(
    const std::vector<std::pair<std::string, wire::ConnectionLoad>>& loads) {
  Metric open{"dtf_connections", "Open connections to this task, by kind.", Metric::Kind::kGauge};
  Metric received{"dtf_received_bytes_total",
                  "Bytes received on connections to this task, without gradients in shared memory.",
                  Metric::Kind::kCounter};
  Metric sent{"dtf_sent_bytes_total",
              "Bytes sent on connections to this task, without parameters in shared memory.",
              Metric::Kind::kCounter};
  for (const auto& [kind, load] : loads) {
    const MetricLabels labels = {{"kind", kind}};
    open.values.push_back({static_cast<double>(load.connections), labels});
    received.values.push_back({static_cast<double>(load.traffic.received), labels});
    sent.values.push_back({static_cast<double>(load.traffic.sent), labels});
  }
  return {open, received, sent};
}

}  // namespace dtf::serving
