#pragma once

// A task as monitoring sees it, over HTTP: a page for people (status_page.h), /metrics for
// Prometheus, /healthz and /readyz for whoever starts and stops tasks.

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

// Asks the task as its watchdog does (service_watch.h): who has asked all loops that it is made of
// says that they turn, and what they do. From a thread of its own, so that one of them that hangs
// is answered for (503), and so that whoever connects costs them nothing but that look: there is
// one at a time, however many ask.
// Owns: the thread, the listening socket, connections.
// Borrows: `control` and what `look` uses (must outlive this).
// Threads: made and destroyed on `control`; `look` is called there.
// Blocks: constructor, on the name resolution of the task's host; destructor, until the thread
// ends. With keys all of it is HTTPS, for whoever shows a certificate of the job;
// without one /healthz and /readyz say yes or no.
// Errors: constructor: those of net::HttpServer; kBadConfig for an address that other hosts can
// reach, unless there are keys or the cluster is `insecure`.
class MetricsServer {
 public:
  static constexpr Duration kPatience = std::chrono::seconds(5);

  // At options.metrics_port of the task's own host. A look that takes longer than `patience` is a
  // loop that hangs.
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
  // Once a second, for the page's curve, whether anybody asks or not: of a task that has a loss.
  kj::Promise<void> sample();

  static constexpr Duration kSampleEvery = std::chrono::seconds(1);

  net::Loop& control_;
  const ServiceLooker look_;
  const cluster::TaskOptions options_;
  const MetricLabels labels_;                   // of every line
  const MetricLabels task_labels_;              // of the line that says what this task is
  const std::shared_ptr<MetricsServer*> self_;  // null once this is gone; control loop
  kj::Promise<void> looking_ = nullptr;         // control loop
  // The thread's loop:
  std::unique_ptr<net::HttpServer> server_;
  std::vector<kj::Own<kj::PromiseFulfiller<ServiceLook>>> waiting_;  // at most one a connection
  bool asked_ = false;                                               // and not answered
  TimePoint begin_;
  double last_step_ = 0;
  ProgressHistory history_;
  kj::Promise<void> sampling_ = nullptr;

  std::string address_;
  net::IoThread thread_;  // last: it uses the others
};

// Of a task with a metrics_port; else null.
std::unique_ptr<MetricsServer> serveMetrics(const cluster::TaskOptions& options,
                                            const net::Credentials& credentials, net::Loop& control,
                                            ServiceLooker look);

}  // namespace dtf::daemons
