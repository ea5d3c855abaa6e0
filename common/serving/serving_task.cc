#include "common/serving/serving_task.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/serving/task_listener.h"

namespace dtf::serving {

namespace {

// A longer wait is without a bound.
constexpr Duration kPatienceMax = std::chrono::hours(24 * 365);

std::string_view signalName(int number) {
  return number == SIGINT ? "SIGINT" : "SIGTERM";
}

}  // namespace

ServingTask::ServingTask(const ServingOptions& options)
    : task_(options.task),
      devices_(makeDevices(options.cluster, options.task)),
      address_(options.cluster.task(options.task).address),
      loop_("dtf-serve", {}, options.credentials) {
  loop_.onStop([this] { close(); });
  loop_.call([&] { open(options); });
}

ServingTask::~ServingTask() = default;

void ServingTask::open(const ServingOptions& options) {
  DTF_CHECK(server_ == nullptr);
  PartServerOptions how = serverOptions(options.cluster, task_, 0);
  if (options.bytes_max > 0) setBytesMax(options.bytes_max, how.limits);
  server_ = std::make_unique<PartServer>(std::move(how), loop_, sessionDevices(task_, devices_));
  listener_ = listen(loop_.reactor(), options.cluster, task_, options.credentials, std::nullopt,
                     [this](net::AcceptedSocket socket, net::ConnectionKind, std::string peer) {
                       serveSocket(loop_.reactor(), *server_, std::move(socket), std::move(peer));
                     });
  address_.port = listener_->port();
  DTF_CHECK(address_.port != 0);
  if (options.handles_signals)
    signals_ = std::make_unique<net::SignalExit>(loop_.reactor(),
                                                 [this](int number) { onSignal(number); });
  log::info("event=serving task={} address={} bytes_max={}", task_.name(), listener_->address(),
            server_->task().limits.bytes);
}

void ServingTask::close() {
  signals_.reset();
  listener_.reset();
  server_.reset();
}

size_t ServingTask::sessions() const {
  return loop_.call([this] { return server_->sessions(); });
}

void ServingTask::onSignal(int number) {
  {
    MutexLock lock(mutex_);
    if (was_signalled_) ::_exit(128 + number);
    was_signalled_ = true;
  }
  end({fmt::format("{} received {}", task_.name(), signalName(number)), number});
}

void ServingTask::stop(std::string reason) {
  end({std::move(reason), 0});
}

void ServingTask::end(End end) {
  MutexLock lock(mutex_);
  if (end_) return;
  end_ = std::move(end);
  ended_.notifyAll();
}

std::optional<ServingTask::End> ServingTask::join(std::optional<Duration> patience) {
  DTF_CHECK_MSG(!loop_.inLoop(), "the loop would wait for itself");
  MutexLock lock(mutex_);
  if (!patience || *patience > kPatienceMax) {
    while (!end_) ended_.wait(mutex_);
    return end_;
  }
  const auto deadline = std::chrono::steady_clock::now() + std::max(*patience, Duration::zero());
  while (!end_ && ended_.waitUntil(mutex_, deadline)) {
  }
  return end_;
}

}  // namespace dtf::serving
