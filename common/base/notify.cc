#include "common/base/notify.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

namespace dtf {

namespace {

int notifyFd() {
  static const int fd = [] {
    const char* text = std::getenv("DTF_NOTIFY_FD");
    if (text == nullptr) return -1;
    const int value = std::atoi(text);
    const int flags = value > 2 ? ::fcntl(value, F_GETFL) : -1;
    if (flags < 0) return -1;
    ::fcntl(value, F_SETFL, flags | O_NONBLOCK);
    ::fcntl(value, F_SETFD, FD_CLOEXEC);
    return value;
  }();
  return fd;
}

}  // namespace

bool notifyEnabled() {
  return notifyFd() >= 0;
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

void notify(const nlohmann::json& line) {
  if (!notifyEnabled()) return;
  const std::string text =
      line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  [[maybe_unused]] const ssize_t written = ::write(notifyFd(), text.data(), text.size());
}

}  // namespace dtf
