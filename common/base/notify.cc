#include "common/base/notify.h"

#include <fcntl.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "common/base/log.h"
#include "common/base/notify_pipe.h"
#include "common/base/service_manager.h"

namespace dtf {

namespace {

// Returns null if this process was started by hand.
NotifyPipe* notifyPipe() {
  static const std::unique_ptr<NotifyPipe> pipe = []() -> std::unique_ptr<NotifyPipe> {
    const char* text = std::getenv("DTF_NOTIFY_FD");
    const int fd = text == nullptr ? -1 : std::atoi(text);
    if (fd <= 2 || ::fcntl(fd, F_GETFL) < 0) return nullptr;
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    return std::make_unique<NotifyPipe>(fd);
  }();
  return pipe.get();
}

std::string textOf(const Json& line) {
  return line.dump() + "\n";
}

}  // namespace

bool notifyEnabled() {
  return notifyPipe() != nullptr;
}

void markLaunch() {
  const std::string now = std::to_string(SystemClock().now().time_since_epoch().count());
  ::setenv("DTF_LAUNCHED_NS", now.c_str(), 1);
}

std::optional<TimePoint> launchedAt() {
  const char* text = std::getenv("DTF_LAUNCHED_NS");
  if (text == nullptr) return std::nullopt;
  return TimePoint(Duration(std::atoll(text)));
}

void notify(const Json& line) {
  if (!notifyEnabled() || notifyPipe()->write(textOf(line))) return;
  log::warning("event=notice_lost notice={} reason=\"dtf-launch is gone, or did not read in time\"",
               line.stringOr("event", ""));
}

void notifyReady() {
  notify({{"event", "ready"}});
  const ServiceManager* manager = serviceManager();
  if (manager == nullptr || manager->tell("READY=1", kNotifyPatience)) return;
  log::warning("event=notice_lost notice=ready reason=\"NOTIFY_SOCKET does not take it\"");
}

void notifyIfRoom(const Json& line) {
  if (notifyEnabled()) notifyPipe()->writeIfRoom(textOf(line));
}

}  // namespace dtf
