#include "daemons/psd/ps_process.h"

#include <fmt/format.h>

#include "common/base/check.h"
#include "common/base/isa.h"
#include "common/base/log.h"
#include "common/base/notify.h"
#include "common/base/trace.h"
#include "common/serving/task_listener.h"
#include "daemons/shard_metrics.h"

namespace dtf::psd {

PsProcess::PsProcess(const cluster::TaskOptions& task, const net::Credentials& credentials,
                     std::optional<Fd> listening, uint64_t chunk_bytes)
    : traces_(task),
      control_loop_(control_, credentials),
      signals_(control_, [this](int number) { onSignal(number); }),
      timelines_(task.job.run_dir / "timeline"),
      watch_(control_.timer, serviceManager(), [this] { return look(); }) {
  // A ps without --train knows no model, and has no timeline.
  if (task.job.train && task.job.train->summaries && task.job.train->summaries->timeline_step > 0)
    trace::start(task.task, task.job.train->summaries->timeline_step);
  shard_.emplace(task, control_, control_loop_, credentials, chunk_bytes);
  listener_ = serving::listen(
      control_, task.job.cluster, task.task, credentials, std::move(listening),
      [this](net::AcceptedSocket socket, net::ConnectionKind kind, std::string peer) {
        shard_->serve(std::move(socket), kind, std::move(peer));
      });
  metrics_ = daemons::serveMetrics(task, credentials, control_loop_, [this] { return look(); });
  if (metrics_ != nullptr) shard_->server().tellsMetricsAt(metrics_->address());
}

PsProcess::~PsProcess() noexcept(false) = default;

int PsProcess::run() {
  DTF_CHECK(shard_ && listener_ != nullptr);
  const host::ServiceOptions& options = shard_->server().options();
  log::info("event=listening address={} job={} workers={} ps={} isa={} version={}",
            listener_->address(), options.job, options.workers, options.ps_tasks,
            isaName(bestIsa()), DTF_VERSION);
  notifyReady();
  shard_->server().start([this] { listener_->close(); }, [this] { control_.stop(); });
  control_.run();
  trace::save(timelines_);
  return shard_->result();
}

void PsProcess::stop() {
  control_loop_.post([this] {
    net::AsioEventPort::Io io(control_.port);
    shard_->server().end(std::nullopt, 0);
  });
}

kj::Promise<daemons::ServiceLook> PsProcess::look() {
  return shard_->server().report().then([this](const host::PsReport& report) {
    daemons::ServiceLook look = daemons::lookOf(report);
    for (Metric& metric : traces_.metrics()) look.metrics.push_back(std::move(metric));
    return look;
  });
}

void PsProcess::onSignal(int number) {
  DTF_CHECK(number > 0);
  net::AsioEventPort::Io io(control_.port);
  watch_.stopping();
  shard_->server().onSignal(number);
}

}  // namespace dtf::psd
