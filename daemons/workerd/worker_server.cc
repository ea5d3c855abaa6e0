#include "daemons/workerd/worker_server.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "common/base/check.h"
#include "common/base/isa.h"
#include "common/base/log.h"
#include "common/base/notify.h"
#include "common/base/paused.h"
#include "common/net/error_bridge.h"
#include "common/net/socket_options.h"
#include "common/serving/task_listener.h"
#include "common/wire/ps/ps_link.h"
#include "daemons/shard_metrics.h"
#include "daemons/workerd/worker_gate.h"
#include "daemons/workerd/worker_metrics.h"

namespace dtf::workerd {

namespace {

// Those of both are the worker's.
void addMissing(std::vector<Metric>& metrics, std::vector<Metric> more) {
  for (Metric& metric : more)
    if (std::ranges::find(metrics, metric.name, &Metric::name) == metrics.end())
      metrics.push_back(std::move(metric));
}

}  // namespace

WorkerServer::WorkerServer(const cluster::TaskOptions& task, const net::Credentials& credentials,
                           std::optional<Fd> listening)
    : task_(task),
      credentials_(credentials),
      traces_(task),
      connections_(loop_, [](const void*) {}),
      signals_(reactor_, [this](int number) { onSignal(number); }),
      watch_(reactor_.timer, serviceManager(), [this] { return look(); }) {
  if (task_.job.cluster.workersHost()) shard_.emplace(task_, reactor_, loop_, credentials_);
  listener_ =
      serving::listen(reactor_, task_.job.cluster, task_.task, credentials_, std::move(listening),
                      [this](net::AcceptedSocket socket, net::ConnectionKind kind,
                             const std::string& peer) { serve(std::move(socket), kind, peer); });
  report_.emplace(task_);
  metrics_ = daemons::serveMetrics(task_, credentials_, loop_, [this] { return look(); });
  if (metrics_ && shard_) shard_->server().tellsMetricsAt(metrics_->address());
}

void WorkerServer::serve(net::AcceptedSocket socket, net::ConnectionKind kind,
                         const std::string& peer) {
  const auto own = [this] {
    return makeWorkerGate(task_, status_, metrics_ ? metrics_->address() : "");
  };
  if (shard_)
    return shard_->serve(
        std::move(socket), kind, peer,
        [&own](schema::PsGate::Client gate, const wire::ConnectionRef& connection) {
          return makeHostingGate(kj::mv(gate), own(), connection);
        });
  if (kind != net::ConnectionKind::kControl) return;  // closed: nothing here has bulk connections
  net::AsioEventPort::Io io(reactor_.port);
  connections_.serve(kj::heap<net::AsioMessageStream>(
                         reactor_.port, net::adoptTransport(reactor_.ioc, std::move(socket)),
                         net::kLimitsBeforeHello, nullptr),
                     peer, [&own](const wire::ConnectionRef& ref) -> capnp::Capability::Client {
                       ref->visitor = true;  // it may not stay
                       return own();
                     });
}

void WorkerServer::leave(int number) {
  DTF_CHECK(number > 0 && report_.has_value());
  if (leaving_) ::_exit(leaving_->exit_code);  // another signal does not wait for the peers
  const bool is_done = trained_ && !error_;    // and reported
  leaving_.emplace(Leaving{is_done && task_.task == kChief ? 0 : 128 + number, Thread()});
  const Error reason(ErrorCode::kUnavailable, fmt::format("it was ended by signal {}", number));
  if (!is_done) {
    log::info("event=ended signal={}{}", number,
              task_.job.savesNothing() ? " saved=nothing because=\"checkpoint: none\"" : "");
    report_->interrupted(number, fmt::format("ended by signal {}", number));
  }
  // Without the chief, nothing supervises the job or reports its result.
  const bool tells = !is_done && task_.task == kChief && status_.phase() != WorkerPhase::kStarting;
  tells ? tellOthers(reason) : leaveShard(reason);
}

// On a thread of its own: the shard of this worker is among those that reply, on this loop.
void WorkerServer::tellOthers(const Error& reason) {
  DTF_CHECK(leaving_ && !leaving_->telling.joinable());
  leaving_->telling = Thread("dtf-tell", [this, reason] {
    status_.tellOthers(reason);
    net::asio::post(reactor_.ioc, [this, reason] {
      const net::AsioEventPort::Io io(reactor_.port);
      leaving_->telling.join();
      leaveShard(reason);
    });
  });
}

void WorkerServer::leaveShard(const Error& reason) {
  DTF_CHECK(leaving_.has_value());
  // A launcher reports the signal itself.
  if (!shard_ || shard_ended_ || notifyEnabled()) ::_exit(leaving_->exit_code);
  shard_->server().leaveWith(reason);
}

// Goes through the loop of the heartbeats: if that loop hangs, so does the worker.
kj::Promise<daemons::ServiceLook> WorkerServer::look() {
  auto answer = kj::newPromiseAndFulfiller<void>();
  // Shared because std::function copies it; used on this loop only.
  auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(answer.fulfiller));
  status_.askHeartbeats([this, fulfiller = std::move(fulfiller)]() mutable {
    loop_.post([fulfiller = std::move(fulfiller)] { (*fulfiller)->fulfill(); });
  });
  kj::Promise<daemons::ServiceLook> own = answer.promise.then([this] {
    daemons::ServiceLook look = lookOf(status_);
    for (Metric& metric : traces_.metrics()) look.metrics.push_back(std::move(metric));
    return look;
  });
  if (!shard_) return own;
  return own.then([this](daemons::ServiceLook look) {
    return shard_->server().report().then([look](const host::PsReport& report) mutable {
      daemons::ServiceLook of_shard = daemons::lookOf(report);
      addMissing(look.metrics, std::move(of_shard.metrics));
      if (look.not_ready.empty()) look.not_ready = std::move(of_shard.not_ready);
      return look;
    });
  });
}

void WorkerServer::onSignal(int number) {
  const net::AsioEventPort::Io io(reactor_.port);
  watch_.stopping();
  if (waitsForOthers()) {
    stopping_ = true;
    return leaveLater(number, "the others, which use its shard");
  }
  const bool ends_by_itself = !stopping_ && status_.askToEnd([this, number](const Error& reason) {
    net::asio::post(reactor_.ioc, [this, number, reason] { onRefused(number, reason); });
  });
  stopping_ = true;
  ends_by_itself ? leaveLater(number, "the last checkpoint") : leave(number);
}

// Whether this worker has done its part, and stays for its shard. A second signal ends it.
bool WorkerServer::waitsForOthers() const {
  return trained_ && !error_ && shard_ && !shard_ended_ && !stopping_;
}

void WorkerServer::leaveLater(int number, std::string_view awaited) {
  const double patience = task_.job.timeouts.stop_seconds;
  log::info("event=stopping signal={} for=\"{}, {:g} s at most\"", number, awaited, patience);
  patience_ = reactor_.timer.afterDelay(net::toKj(fromSeconds(patience)))
                  .then([this, number] { leave(number); })
                  .eagerlyEvaluate(nullptr);
}

// ps/0 won't end the job, so nothing is saved; but the job may have ended meanwhile.
void WorkerServer::onRefused(int number, const Error& reason) {
  const net::AsioEventPort::Io io(reactor_.port);
  log::warning("event=stop_refused reason=\"{}\"", reason.message());
  if (status_.phase() == WorkerPhase::kTraining) leave(number);
}

// The others may need the values of this worker's shard after its own last step. A worker that has
// failed doesn't stay for them: another process of it is better than its shard alone.
void WorkerServer::onTrained() {
  const net::AsioEventPort::Io io(reactor_.port);
  trained_ = true;
  if (leaving_) return;  // the process ends with that code
  if (!shard_ || shard_ended_) return reactor_.stop();
  if (error_) endShard();
}

// Ends the shard of a worker that has failed. The peers get the error before the connections close.
void WorkerServer::endShard() {
  DTF_CHECK(error_ && shard_);
  host::PsServer& server = shard_->server();
  if (server.isEnding()) return;  // the failure has ended the job, here too
  if (error_->has(ErrorTrait::kJobEnded))
    server.end(error_, 0);
  else
    server.leaveWith(*error_);
}

// If the training goes on, its calls to the shard fail with the shard's error.
void WorkerServer::onShardEnded() {
  DTF_CHECK(shard_.has_value());
  shard_ended_ = true;
  if (leaving_ && leaving_->telling.joinable()) return;  // leaveShard() follows
  if (leaving_) ::_exit(leaving_->exit_code);
  if (trained_) reactor_.stop();
}

void WorkerServer::takeShardsResult() {
  if (!shard_ || error_) return;
  DTF_CHECK(trained_ || leaving_);
  try {
    shard_->result();
  } catch (const Error& error) {
    error_ = error;
  }
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
    net::asio::post(reactor_.ioc, [this] { onTrained(); });
  });
  if (shard_) shard_->server().start([this] { listener_->close(); }, [this] { onShardEnded(); });
  reactor_.run();
  training.join();
  takeShardsResult();
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
    const std::string cause =
        ended_.stopped_as + ", and the job keeps no checkpoints (checkpoint: none)";
    log::info("event=interrupted reason=\"{}\"", cause);
    report_->interrupted(SIGTERM, cause);
    return 128 + SIGTERM;
  }
  const int code = ended_.paused ? kPausedExitCode : 0;
  report_->done(code);
  return code;
}

}  // namespace dtf::workerd
