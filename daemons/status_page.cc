#include "daemons/status_page.h"

#include "common/base/json.h"
#include "common/cluster/address.h"

namespace dtf::daemons {

namespace {

constexpr std::string_view kPage =
#include "daemons/status_page.html"
    ;

// The URL of a task; null if its port is unknown (`port: auto`) or it has none.
Json urlOf(const cluster::JobSpec& job, TaskId task) {
  const std::string url = cluster::metricsUrl(job, task);
  return url.empty() ? Json(nullptr) : Json(url);
}

Json tasksOf(const cluster::JobSpec& job) {
  Json tasks = Json::array();
  for (const JobKind kind : {JobKind::kPs, JobKind::kWorker})
    for (uint32_t i = 0; i < job.cluster.tasks(kind).size(); ++i) {
      const TaskId task{kind, i};
      tasks.push_back({{"name", task.name()}, {"url", urlOf(job, task)}});
    }
  return tasks;
}

Json valuesOf(const std::vector<Metric>& metrics) {
  Json values = Json::array();
  const auto add = [&values](std::string_view name, const MetricLabels& labels, double value) {
    Json of_labels = Json::object();
    for (const auto& [key, text] : labels) of_labels[key] = text;
    values.push_back(Json::array({name, of_labels, value}));
  };
  for (const Metric& metric : metrics) {
    for (const MetricValue& each : metric.values) add(metric.name, each.labels, each.value);
    if (metric.kind != Metric::Kind::kHistogram) continue;
    uint64_t count = metric.histogram.above;
    for (const HistogramValue::Bucket& bucket : metric.histogram.buckets) count += bucket.count;
    add(std::string(metric.name) + "_sum", {}, metric.histogram.sum);
    add(std::string(metric.name) + "_count", {}, static_cast<double>(count));
  }
  return values;
}

Json columnsOf(const std::vector<ProgressPoint>& history) {
  Json seconds = Json::array();
  Json steps = seconds, losses = seconds, rates = seconds;
  for (const ProgressPoint& point : history) {
    seconds.push_back(point.seconds);
    steps.push_back(point.step);
    losses.push_back(point.loss);
    rates.push_back(point.examples_per_second);
  }
  return {{"seconds", seconds}, {"step", steps}, {"loss", losses}, {"examples_per_second", rates}};
}

}  // namespace

std::string_view statusPage() {
  return kPage;
}

std::string_view statusPagePolicy() {
  return "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src "
         "http: https:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
}

std::string statusJson(const cluster::TaskOptions& options, const ServiceLook& look,
                       const std::vector<Metric>& metrics, const ProgressHistory& history) {
  const Json document = {{"schema", 1},
                         {"job", options.job.job},
                         {"task", options.task.name()},
                         {"status", look.status},
                         {"not_ready", look.not_ready},
                         {"tasks", tasksOf(options.job)},
                         {"metrics", valuesOf(metrics)},
                         {"history", columnsOf(history.points())}};
  // A quoted status may not be UTF-8.
  return document.dump() + "\n";
}

std::vector<std::string> hostsOfTasks(const cluster::TaskOptions& options) {
  std::vector<std::string> hosts;
  for (const JobKind kind : {JobKind::kPs, JobKind::kWorker})
    for (const cluster::TaskSpec& task : options.job.cluster.tasks(kind)) {
      const std::string& host = task.address.host;
      hosts.push_back(host);
      // In every spelling.
      if (host == "localhost" || cluster::isLoopback(host))
        hosts.insert(hosts.end(), {"localhost", "127.0.0.1", "::1"});
    }
  return hosts;
}

}  // namespace dtf::daemons
