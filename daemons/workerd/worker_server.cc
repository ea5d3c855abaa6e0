#include "daemons/workerd/worker_server.h"

#include <fmt/core.h>
#include <unistd.h>

#include <csignal>

#include "common/base/check.h"
#include "common/base/isa.h"
#include "common/base/log.h"
#include "common/base/paused.h"
#include "common/net/error_bridge.h"
#include "common/net/socket_options.h"
#include "common/wire/ps_link.h"
#include "daemons/workerd/worker_gate.h"
#include "daemons/workerd/worker_metrics.h"

namespace dtf::workerd {

WorkerServer::WorkerServer(const cluster::TaskOptions& task, const net::Credentials& credentials,
                           std::optional<Fd> listening)
    : task_(task),
      credentials_(credentials),
      traces_(task),
      connections_(loop_, [](const void*) {}),
      signals_(reactor_, [this](int number) { onSignal(number); }),
      watch_(reactor_.timer, serviceManager(), [this] { return look(); }) {
  listener_ = daemons::listen(
      reactor_, task_, credentials_, std::move(listening),
      [this](net::AcceptedSocket socket, net::ConnectionKind kind, const std::string& peer) {
        if (kind != net::ConnectionKind::kControl)
          return;  // workers have no bulk connections: closed
        net::AsioEventPort::Io io(reactor_.port);
        connections_.serve(
            kj::heap<net::AsioMessageStream>(reactor_.port,
                                             net::adoptTransport(reactor_.ioc, std::move(socket)),
                                             net::kLimitsBeforeHello, nullptr),
            peer, [this](const daemons::ConnectionRef& ref) -> capnp::Capability::Client {
              ref->visitor = true;  // it may not stay
              return makeWorkerGate(task_, status_, metrics_ ? metrics_->address() : "");
            });
      });
  report_.emplace(task_);
  metrics_ = daemons::serveMetrics(task_, credentials_, loop_, [this] { return look(); });
}

void WorkerServer::leave(int number) {
  DTF_CHECK(number > 0 && report_.has_value());
  log::info("event=ended signal={}", number);
  // Without the chief, nothing supervises the job or reports its result.
  if (task_.task == kChief && status_.phase() != WorkerPhase::kStarting)
    status_.tellOthers(
        Error(ErrorCode::kUnavailable, fmt::format("it was ended by signal {}", number)));
  report_->interrupted(number, fmt::format("ended by signal {}", number));
  ::_exit(128 + number);
}

// Goes through the loop of the heartbeats: if that loop hangs, so does the worker.
kj::Promise<daemons::ServiceLook> WorkerServer::look() {
  auto answer = kj::newPromiseAndFulfiller<void>();
  // Shared because std::function copies it; used on this loop only.
  auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(answer.fulfiller));
  status_.askHeartbeats([this, fulfiller = std::move(fulfiller)]() mutable {
    loop_.post([fulfiller = std::move(fulfiller)] { (*fulfiller)->fulfill(); });
  });
  return answer.promise.then([this] {
    daemons::ServiceLook look = lookOf(status_);
    for (Metric& metric : traces_.metrics()) look.metrics.push_back(std::move(metric));
    return look;
  });
}

void WorkerServer::onSignal(int number) {
  const net::AsioEventPort::Io io(reactor_.port);
  watch_.stopping();
  const bool ends_by_itself = !stopping_ && status_.askToEnd([this, number](const Error& reason) {
    net::asio::post(reactor_.ioc, [this, number, reason] { onRefused(number, reason); });
  });
  if (!ends_by_itself) leave(number);
  stopping_ = true;
  const double patience = task_.job.timeouts.stop_seconds;
  log::info("event=stopping signal={} for=\"the last checkpoint, {:g} s at most\"", number,
            patience);
  patience_ = reactor_.timer.afterDelay(net::toKj(fromSeconds(patience)))
                  .then([this, number] { leave(number); })
                  .eagerlyEvaluate(nullptr);
}

// ps/0 won't end the job, so nothing is saved; but the job may have ended meanwhile.
void WorkerServer::onRefused(int number, const Error& reason) {
  log::warning("event=stop_refused reason=\"{}\"", reason.message());
  if (status_.phase() == WorkerPhase::kTraining) leave(number);
}

int WorkerServer::run() {
  DTF_CHECK(!error_ && status_.phase() == WorkerPhase::kStarting);  // called once
  log::info("event=listening address={} job={} isa={} version={}", listener_->address(),
            task_.job.job, isaName(bestIsa()), DTF_VERSION);
  Thread training("dtf-train", [this] {
    try {
      ended_ = runWorkerJob(task_, credentials_, status_, *report_);
    } catch (const std::exception&) {
      error_ = net::currentError();
    }
    net::asio::post(reactor_.ioc, [this] { reactor_.stop(); });
  });
  reactor_.run();
  training.join();
  if (error_ && report_->isOverWithout(*error_)) {
    log::info("event=finished_before reason=\"the job had its result; {}\"", error_->message());
    report_->done(0);
    return 0;
  }
  if (error_) {
    report_->failed(*error_);
    throw Error(*error_);
  }
  if (!ended_.stopped_as.empty()) {
    const std::string cause = ended_.stopped_as + ", and the job keeps no checkpoints";
    log::info("event=interrupted reason=\"{}\"", cause);
    report_->interrupted(SIGTERM, cause);
    return 128 + SIGTERM;
  }
  const int code = ended_.paused ? kPausedExitCode : 0;
  report_->done(code);
  return code;
}

}  // namespace dtf::workerd
