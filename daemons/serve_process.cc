#include "daemons/serve_process.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/cores.h"
#include "common/base/host_memory.h"
#include "common/base/isa.h"
#include "common/base/log.h"
#include "common/base/notify.h"
#include "common/base/text.h"
#include "common/net/message_stream.h"
#include "common/net/socket_options.h"
#include "common/runtime/convolution_ways.h"

namespace dtf::daemons {

namespace {

int threadsOf(const cluster::TaskOptions& task) {
  if (task.task.job == JobKind::kPs) return availableCores();
  return cluster::computeThreads(task.job.cluster, task.task.index, availableCores());
}

// Each device gets its share of the threads, as in a worker that trains.
ComputingDevices makeDevices(const cluster::TaskOptions& task) {
  const std::vector<std::string> names =
      cluster::devicesOf(task.job.cluster.tasks(task.task.job).at(task.task.index));
  const int threads = runtime::threadsOfEach(threadsOf(task), names.size());
  ComputingDevices devices;
  for (const std::string& name : names)
    devices.push_back(
        std::make_unique<runtime::ComputingDevice>(name, threads, runtime::tableRule()));
  return devices;
}

std::vector<engine::SessionDevice> sessionDevices(TaskId task, const ComputingDevices& devices) {
  std::vector<engine::SessionDevice> named;
  for (const auto& each : devices)
    named.push_back({runtime::fullName(task, std::string(each->device->name())), each->device.get(),
                     &each->kernels});
  return named;
}

std::vector<cluster::Address> addressesOf(const std::vector<cluster::TaskSpec>& tasks) {
  std::vector<cluster::Address> addresses;
  for (const cluster::TaskSpec& task : tasks) addresses.push_back(task.address);
  return addresses;
}

// The task's share of three quarters of the host's memory, among the cluster's tasks on this host.
// The file cache, other programs and uncounted memory take the rest.
serving::ServeLimits limitsOfHost(const cluster::TaskOptions& task) {
  serving::ServeLimits limits;
  const auto tasks = static_cast<uint64_t>(cluster::tasksBeside(task.job.cluster, task.task));
  if (const uint64_t total = hostMemory().total; total > 0) limits.bytes = total / 4 * 3 / tasks;
  limits.rendezvous.bytes = std::min(limits.rendezvous.bytes, limits.bytes / 4);
  return limits;
}

}  // namespace

ServeProcess::ServeProcess(const cluster::TaskOptions& task, const net::Credentials& credentials,
                           std::optional<Fd> listening)
    : devices_(makeDevices(task)),
      loop_(reactor_, credentials),
      server_({.self = task.task,
               .incarnation = Incarnation::ofNow(task.attempt),
               .ps = addressesOf(task.job.cluster.ps),
               .workers = addressesOf(task.job.cluster.worker),
               .limits = limitsOfHost(task)},
              loop_, sessionDevices(task.task, devices_)),
      signals_(reactor_, [this](int number) { onSignal(number); }),
      listener_(listen(reactor_, task, credentials, std::move(listening),
                       [this](net::AcceptedSocket socket, net::ConnectionKind, std::string peer) {
                         onSocket(std::move(socket), std::move(peer));
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

void ServeProcess::onSocket(net::AcceptedSocket socket, std::string peer) {
  const net::AsioEventPort::Io io(reactor_.port);
  server_.serve(kj::heap<net::AsioMessageStream>(
                    reactor_.port, net::adoptTransport(reactor_.ioc, std::move(socket)),
                    net::kLimitsBeforeHello, server_.pool()),
                std::move(peer));
}

}  // namespace dtf::daemons
