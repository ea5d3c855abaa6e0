#include "daemons/psd/ps_process.h"

#include <fmt/format.h>

#include "common/base/isa.h"
#include "common/base/log.h"
#include "common/base/notify.h"
#include "common/base/trace.h"
#include "common/net/socket_options.h"
#include "daemons/psd/compute_runner.h"
#include "daemons/psd/ps_metrics.h"

namespace dtf::psd {

namespace {

checkpoint::SnapshotPlace placeOf(const cluster::JobSpec& job) {
  if (job.durability.kind != cluster::Durability::kSnapshot) return {};
  return checkpoint::sharedMemoryPlace(job.job, job.run_dir);
}

}  // namespace

PsProcess::PsProcess(const cluster::TaskOptions& task, const net::Credentials& credentials,
                     std::optional<Fd> listening, uint64_t chunk_bytes)
    : traces_(task),
      control_loop_(control_, credentials),
      disk_("psd-disk"),
      data_("psd-data", net::kDataBusyPoll, credentials),
      signals_(control_, [this](int number) { onSignal(number); }),
      timelines_(task.job.run_dir / "timeline"),
      watch_(control_.timer, serviceManager(), [this] { return look(); }) {
  // A ps that wasn't told what is trained has no timeline.
  if (task.job.train && task.job.train->summaries && task.job.train->summaries->timeline_step > 0)
    trace::start(task.task, task.job.train->summaries->timeline_step);
  server_ = std::make_unique<PsServer>(task, control_loop_, data_, disk_, realFileSystem(),
                                       placeOf(task.job), chunk_bytes);
  data_.call([this] { server_->startData(std::make_unique<ComputeRunner>(data_)); });
  data_.onStop([this] { server_->stopData(); });
  listener_ = daemons::listen(
      control_, task, credentials, std::move(listening),
      [this](net::AcceptedSocket socket, net::ConnectionKind kind, std::string peer) {
        onSocket(std::move(socket), kind, std::move(peer));
      });
  metrics_ = daemons::serveMetrics(task, credentials, control_loop_, [this] { return look(); });
  if (metrics_ != nullptr) server_->tellsMetricsAt(metrics_->address());
}

PsProcess::~PsProcess() noexcept(false) = default;

int PsProcess::run() {
  const ServiceOptions& options = server_->options();
  log::info("event=listening address={} job={} workers={} ps={} isa={} version={}",
            listener_->address(), options.job, options.workers, options.ps_tasks,
            isaName(bestIsa()), DTF_VERSION);
  notifyReady();
  server_->start([this] { listener_->close(); }, [this] { control_.stop(); });
  control_.run();
  trace::save(timelines_);
  const int code = server_->result();
  // Else the job may need them still.
  if (server_->endedWell()) forgetSnapshots(options.checkpoint);
  return code;
}

void PsProcess::stop() {
  control_loop_.post([this] {
    net::AsioEventPort::Io io(control_.port);
    server_->end(std::nullopt, 0);
  });
}

kj::Promise<daemons::ServiceLook> PsProcess::look() {
  return server_->report().then([this](const PsReport& report) {
    daemons::ServiceLook look = lookOf(report);
    for (Metric& metric : traces_.metrics()) look.metrics.push_back(std::move(metric));
    return look;
  });
}

void PsProcess::onSignal(int number) {
  net::AsioEventPort::Io io(control_.port);
  watch_.stopping();
  server_->onSignal(number);
}

void PsProcess::onSocket(net::AcceptedSocket socket, net::ConnectionKind kind, std::string peer) {
  if (kind == net::ConnectionKind::kBulk) {
    auto accepted = std::make_shared<net::AcceptedSocket>(std::move(socket));
    data_.post([this, accepted, peer = std::move(peer)] {
      server_->serveBulk(
          kj::heap<net::AsioMessageStream>(
              data_.port(), net::adoptTransport(data_.reactor().ioc, std::move(*accepted)),
              net::kLimitsBeforeHello, server_->bulkPool()),
          peer);
    });
    return;
  }
  net::AsioEventPort::Io io(control_.port);
  server_->serveControl(kj::heap<net::AsioMessageStream>(
                            control_.port, net::adoptTransport(control_.ioc, std::move(socket)),
                            net::kLimitsBeforeHello, nullptr),
                        std::move(peer));
}

}  // namespace dtf::psd
