#include "daemons/serve_process.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "common/base/check.h"
#include "common/base/isa.h"
#include "common/base/log.h"
#include "common/base/notify.h"
#include "common/base/text.h"
#include "common/serving/task_listener.h"

namespace dtf::daemons {

ServeProcess::ServeProcess(const cluster::TaskOptions& task, const net::Credentials& credentials,
                           std::optional<Fd> listening)
    : devices_(serving::makeDevices(task.job.cluster, task.task)),
      loop_(reactor_, credentials),
      server_(serving::serverOptions(task.job.cluster, task.task, task.attempt), loop_,
              serving::sessionDevices(task.task, devices_)),
      signals_(reactor_, [this](int number) { onSignal(number); }),
      listener_(serving::listen(
          reactor_, task.job.cluster, task.task, credentials, std::move(listening),
          [this](net::AcceptedSocket socket, net::ConnectionKind, std::string peer) {
            serving::serveSocket(reactor_, server_, std::move(socket), std::move(peer));
          })),
      watch_(reactor_.timer, serviceManager(),
             [this]() -> kj::Promise<ServiceLook> { return look(); }),
      metrics_(serveMetrics(task, credentials, loop_,
                            [this]() -> kj::Promise<ServiceLook> { return look(); })) {
  if (metrics_ != nullptr) server_.tellsMetricsAt(metrics_->address());
}

ServiceLook ServeProcess::look() const {
  return {.status = fmt::format("serving, {} sessions", server_.sessions()),
          .metrics = server_.metrics()};
}

int ServeProcess::run() {
  DTF_CHECK(signal_ == 0);  // called once
  std::vector<std::string> names;
  for (const auto& each : devices_) names.emplace_back(each->device->name());
  log::info("event=serving address={} devices={} threads={} bytes_max={} isa={} version={}",
            listener_->address(), join(names, ","),
            devices_.size() * static_cast<size_t>(devices_[0]->pool.threads()),
            server_.task().limits.bytes, isaName(bestIsa()), DTF_VERSION);
  notifyReady();
  reactor_.run();
  listener_->close();
  const bool cut_short = server_.sessions() > 0;
  log::info("event=ended signal={} sessions={}", signal_, server_.sessions());
  return cut_short ? 128 + signal_ : 0;
}

void ServeProcess::onSignal(int number) {
  watch_.stopping();
  if (signal_ != 0) ::_exit(128 + number);
  signal_ = number;
  reactor_.stop();
}

}  // namespace dtf::daemons
