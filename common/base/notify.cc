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

void notify(const nlohmann::json& line) {
  if (!notifyEnabled()) return;
  const std::string text =
      line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  [[maybe_unused]] const ssize_t written = ::write(notifyFd(), text.data(), text.size());
}

}  // namespace dtf
