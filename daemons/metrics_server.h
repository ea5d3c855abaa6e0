#pragma once

// A task's HTTP server for monitoring: a page for people (status_page.h), /metrics for Prometheus,
// /healthz and /readyz for supervisors.

#include <kj/async.h>

#include <memory>
#include <string>
#include <vector>

#include "common/cluster/options.h"
#include "common/net/credentials.h"
#include "common/net/http_server.h"
#include "common/net/loop.h"
#include "common/net/reactor.h"
#include "daemons/progress_history.h"
#include "daemons/service_watch.h"

namespace dtf::daemons {

// Queries the task through `look`, as its watchdog does (service_watch.h): a finished look shows
// that all loops of the task turn. Runs in a thread of its own, so that it can reply 503 for a loop
// that hangs, and so that clients cost the task's loops only that look. One look runs at a time,
// for all requests.
// Owns: the thread, the listening socket, connections.
// Borrows: `control` and the objects that `look` uses (must outlive this).
// Threads: made and destroyed on `control`; `look` is called there.
// Blocks: constructor, on the name resolution of the task's host; destructor, until the thread
// ends.
// With keys, everything is HTTPS and needs a certificate of the job; without one, /healthz and
// /readyz reply only yes or no.
// Errors: constructor: errors of net::HttpServer; kBadConfig for an address that other hosts can
// reach, unless there are keys or the cluster is `insecure`.
class MetricsServer {
 public:
  static constexpr Duration kPatience = std::chrono::seconds(5);

  // Listens at options.metrics_port of the task's host. A look that takes longer than `patience`
  // counts as a loop that hangs.
  MetricsServer(const cluster::TaskOptions& options, const net::Credentials& credentials,
                net::Loop& control, ServiceLooker look, Duration patience = kPatience);
  ~MetricsServer() noexcept(false);
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  // "127.0.0.1:9400"
  const std::string& address() const { return address_; }

 private:
  kj::Promise<net::HttpResponse> respond(const std::string& path);
  kj::Promise<ServiceLook> ask();
  void look();
  void answered(const ServiceLook& look);
  std::vector<Metric> metricsOf(const ServiceLook& look) const;
  // Adds a point to the page's curve once a second, also without requests, if the task has a loss.
  kj::Promise<void> sample();

  static constexpr Duration kSampleEvery = std::chrono::seconds(1);

  net::Loop& control_;
  const ServiceLooker look_;
  const cluster::TaskOptions options_;
  const MetricLabels labels_;                   // of every line
  const MetricLabels task_labels_;              // of dtf_task_info
  const std::shared_ptr<MetricsServer*> self_;  // null once this is gone; control loop
  kj::Promise<void> looking_ = nullptr;         // control loop
  // The thread's loop:
  std::unique_ptr<net::HttpServer> server_;
  std::vector<kj::Own<kj::PromiseFulfiller<ServiceLook>>> waiting_;  // at most one a connection
  bool asked_ = false;                                               // a look is under way
  TimePoint begin_;
  double last_step_ = 0;
  ProgressHistory history_;
  kj::Promise<void> sampling_ = nullptr;

  std::string address_;
  net::IoThread thread_;  // last: it uses the other members
};

// Returns null for a task without a metrics_port.
std::unique_ptr<MetricsServer> serveMetrics(const cluster::TaskOptions& options,
                                            const net::Credentials& credentials, net::Loop& control,
                                            ServiceLooker look);

}  // namespace dtf::daemons
