#include "daemons/metrics_server.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/isa.h"
#include "common/base/log.h"
#include "common/base/process_metrics.h"
#include "common/net/damage.h"
#include "common/serving/task_listener.h"
#include "daemons/status_page.h"

namespace dtf::daemons {

namespace {

// The content type of Prometheus' text.
constexpr std::string_view kMetricsText = "text/plain; version=0.0.4; charset=utf-8";

// Returns the metric's value; nullopt if the task doesn't have it.
std::optional<double> valueOf(const std::vector<Metric>& metrics, std::string_view name) {
  for (const Metric& metric : metrics)
    if (metric.name == name && !metric.values.empty()) return metric.values[0].value;
  return std::nullopt;
}

cluster::TaskSpec taskOf(const cluster::TaskOptions& options) {
  return options.job.cluster.tasks(options.task.job).at(options.task.index);
}

// Runs on the thread's loop.
std::unique_ptr<net::HttpServer> listenForHttp(net::IoThread& thread,
                                               const cluster::TaskOptions& options,
                                               const net::Credentials& credentials,
                                               Duration patience,
                                               net::HttpServer::Handler handler) {
  const std::string host = taskOf(options).address.host;
  net::HttpOptions limits;
  limits.answer_deadline = patience;
  limits.keys = credentials.keys();
  limits.open_paths = {"/healthz", "/readyz"};
  // Rejects requests by another host name. With keys the certificate does that.
  if (!options.job.cluster.insecure && limits.keys == nullptr) limits.only_host = host;
  limits.readers = hostsOfTasks(options);
  std::unique_ptr<net::HttpServer> server;
  try {
    server = std::make_unique<net::HttpServer>(thread.port(), host, *options.metrics_port,
                                               std::move(handler), limits);
  } catch (const Error& error) {
    throw Error(error.code(),
                error.message() + "; it is to have this task's metrics (metrics.port)");
  }
  if (limits.keys == nullptr)
    serving::checkReach(server->address(), options.job.cluster, options.task,
                        cluster::refusalToShow);
  return server;
}

}  // namespace

// No label is called "job": Prometheus sets one of that name itself.
MetricsServer::MetricsServer(const cluster::TaskOptions& options,
                             const net::Credentials& credentials, net::Loop& control,
                             ServiceLooker look, Duration patience)
    : control_(control),
      look_(std::move(look)),
      options_(options),
      labels_{{"dtf_job", options.job.job}, {"task", options.task.name()}},
      task_labels_{{"version", DTF_VERSION},
                   {"isa", std::string(isaName(bestIsa()))},
                   {"attempt", std::to_string(options.attempt)}},
      self_(std::make_shared<MetricsServer*>(this)),
      thread_("dtf-http") {
  DTF_CHECK(look_ != nullptr && options.metrics_port.has_value());
  thread_.onStop([this] {
    sampling_ = nullptr;
    server_ = nullptr;
    waiting_.clear();
  });
  address_ = thread_.call([this, &options, &credentials, patience] {
    server_ = listenForHttp(thread_, options, credentials, patience,
                            [this](const std::string& path) { return respond(path); });
    begin_ = thread_.clock().now();
    sampling_ = sample().eagerlyEvaluate(nullptr);
    return server_->address();
  });
  log::info("event=metrics url={}://{}/metrics", credentials.keys() == nullptr ? "http" : "https",
            address_);
}

MetricsServer::~MetricsServer() noexcept(false) {
  *self_ = nullptr;
  looking_ = nullptr;  // afterwards nothing more is posted to the thread
}

kj::Promise<net::HttpResponse> MetricsServer::respond(const std::string& path) {
  if (path == "/")
    return net::HttpResponse{
        200, std::string(statusPage()), "text/html; charset=utf-8", {}, statusPagePolicy()};
  if (path == "/status.json")
    return ask().then([this](const ServiceLook& look) {
      return net::HttpResponse{200, statusJson(options_, look, metricsOf(look), history_),
                               "application/json"};
    });
  if (path == "/metrics")
    return ask().then([this](const ServiceLook& look) {
      return net::HttpResponse{200, metricsText(metricsOf(look), labels_), kMetricsText};
    });
  if (path == "/healthz")
    return ask().then([](const ServiceLook& look) {
      return net::HttpResponse{200, look.status + "\n"};
    });
  if (path == "/readyz")
    return ask().then([](const ServiceLook& look) {
      if (look.not_ready.empty()) return net::HttpResponse{200, "ready\n"};
      return net::HttpResponse{503, "not ready: " + look.not_ready + "\n"};
    });
  return net::HttpResponse{404, "there are /, /status.json, /metrics, /healthz and /readyz\n"};
}

// Requests during a look share its result.
kj::Promise<ServiceLook> MetricsServer::ask() {
  thread_.assertInLoop();
  auto answer = kj::newPromiseAndFulfiller<ServiceLook>();
  std::erase_if(waiting_, [](auto& other) { return !other->isWaiting(); });
  waiting_.push_back(kj::mv(answer.fulfiller));
  if (!std::exchange(asked_, true))
    control_.post([self = self_] {
      if (*self != nullptr) (*self)->look();
    });
  return kj::mv(answer.promise);
}

void MetricsServer::look() {
  looking_ =
      lookAt(look_)
          .then([this](const ServiceLook& look) { thread_.post([this, look] { answered(look); }); })
          .eagerlyEvaluate(nullptr);
}

void MetricsServer::answered(const ServiceLook& look) {
  DTF_CHECK(asked_);
  asked_ = false;
  auto waiting = std::exchange(waiting_, {});
  for (auto& other : waiting) other->fulfill(ServiceLook(look));
}

kj::Promise<void> MetricsServer::sample() {
  return ask().then([this](const ServiceLook& look) {
    const std::optional<double> loss = valueOf(look.metrics, "dtf_loss");
    const double step = valueOf(look.metrics, "dtf_global_step").value_or(0);
    if (loss && step > 0 && step != last_step_)
      history_.offer({toSeconds(thread_.clock().now() - begin_), step, *loss,
                      valueOf(look.metrics, "dtf_job_examples_per_second").value_or(0)});
    last_step_ = step;
    if (!look.metrics.empty() && !loss)
      return kj::Promise<void>(kj::READY_NOW);  // it trains nothing
    return thread_.timer().afterDelay(net::toKj(kSampleEvery)).then([this] { return sample(); });
  });
}

std::vector<Metric> MetricsServer::metricsOf(const ServiceLook& look) const {
  std::vector<Metric> metrics = {
      {"dtf_task_info",
       "Always 1; the labels describe this task.",
       Metric::Kind::kGauge,
       {{1, task_labels_}}},
      gauge("dtf_task_ready", "1 if /readyz answers 200, else 0.", look.not_ready.empty() ? 1 : 0)};
  metrics.insert(metrics.end(), look.metrics.begin(), look.metrics.end());
  metrics.push_back(counter("dtf_damaged_messages_total",
                            "Messages received with damaged bytes, on connections without TLS.",
                            static_cast<double>(net::damagedMessages())));
  const std::vector<Metric> process = processMetrics();
  metrics.insert(metrics.end(), process.begin(), process.end());
  return metrics;
}

std::unique_ptr<MetricsServer> serveMetrics(const cluster::TaskOptions& options,
                                            const net::Credentials& credentials, net::Loop& control,
                                            ServiceLooker look) {
  if (!options.metrics_port) return nullptr;
  return std::make_unique<MetricsServer>(options, credentials, control, std::move(look));
}

}  // namespace dtf::daemons
