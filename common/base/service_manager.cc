#include "common/base/service_manager.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/notify.h"
#include "common/base/text.h"

namespace dtf {

namespace {

constexpr std::string_view kFailed = "failed: ";
constexpr std::string_view kFailedWithJob = "failed with its job: ";
// The status that dtf 0.1.0 gave such a task.
constexpr std::string_view kFailedWithJobBefore = "failed: the job was ended by ";
constexpr std::string_view kResult = "done: the result of step ";

template <class Number>
Number numberOf(const char* variable, const char* text) {
  Number number{};
  const char* const end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, number);
  if (error != std::errc() || stop != end || number < Number{0})
    throw Error(ErrorCode::kUsage, std::string(variable) + "=" + text + " is no number");
  return number;
}

// "@name": an abstract name starts with a zero byte and ends with its length.
socklen_t addressOf(const std::string& socket, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  DTF_CHECK(!socket.empty() && socket.size() < sizeof address.sun_path);
  std::memcpy(address.sun_path, socket.data(), socket.size());
  const bool is_abstract = socket.front() == '@';
  if (is_abstract) address.sun_path[0] = '\0';
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket.size() +
                                (is_abstract ? 0 : 1));
}

std::unique_ptr<ServiceManager> fromEnvironment() {
  const char* socket = std::getenv("NOTIFY_SOCKET");
  if (socket == nullptr || *socket == '\0' || notifyEnabled()) return nullptr;
  try {
    return std::make_unique<ServiceManager>(
        socket,
        watchdogPeriod(std::getenv("WATCHDOG_USEC"), std::getenv("WATCHDOG_PID"), ::getpid()));
  } catch (const Error& error) {
    log::warning("event=service_manager_ignored reason=\"{}\"", error.message());
    return nullptr;
  }
}

}  // namespace

std::string statusWord(std::string_view text) {
  return "STATUS=" + printable(text.substr(0, kServiceStatusBytesMax - 7));
}

std::string failedStatus(const Error& error) {
  const bool job_ended = error.has(ErrorTrait::kJobEnded);
  return std::string(job_ended ? kFailedWithJob : kFailed) + error.message();
}

std::optional<FailedStatus> readFailedStatus(std::string_view status) {
  for (const std::string_view begin : {kFailed, kFailedWithJob})
    if (status.starts_with(begin))
      return FailedStatus{std::string(status.substr(begin.size())),
                          begin == kFailedWithJob || status.starts_with(kFailedWithJobBefore)};
  return std::nullopt;
}

std::string resultStatus(uint64_t step) {
  return std::string(kResult) + std::to_string(step);
}

bool isResultStatus(std::string_view status) {
  return status.starts_with(kResult);
}

Duration watchdogPeriod(const char* usec, const char* pid, int self) {
  DTF_CHECK(self > 0);
  if (usec == nullptr) return {};
  if (pid != nullptr && numberOf<int>("WATCHDOG_PID", pid) != self) return {};
  const auto period = numberOf<int64_t>("WATCHDOG_USEC", usec);
  return fromSeconds(static_cast<double>(period) * 1e-6);
}

ServiceManager::ServiceManager(std::string socket, Duration watchdog)
    : socket_(std::move(socket)), watchdog_(watchdog) {
  DTF_CHECK(watchdog_ >= Duration{0});
  const bool is_name = socket_.size() > 1 && (socket_.front() == '/' || socket_.front() == '@');
  if (!is_name || socket_.size() >= sizeof(sockaddr_un::sun_path))
    throw Error(ErrorCode::kUsage, "NOTIFY_SOCKET=" + printable(socket_) +
                                       " names no Unix socket: expected /path or @name");
}

// Opens a new socket each time, because the manager may have recreated its own.
bool ServiceManager::tell(std::string_view words, Duration patience) const {
  DTF_CHECK(!words.empty() && patience >= Duration{0});
  const Fd from(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!from.valid()) return false;
  const auto usec = std::chrono::duration_cast<std::chrono::microseconds>(patience).count();
  const timeval limit{usec / 1'000'000, usec % 1'000'000};
  if (usec > 0) ::setsockopt(from.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  sockaddr_un to;
  const socklen_t bytes = addressOf(socket_, to);
  const ssize_t sent =
      ::sendto(from.get(), words.data(), words.size(), MSG_NOSIGNAL | (usec > 0 ? 0 : MSG_DONTWAIT),
               reinterpret_cast<const sockaddr*>(&to), bytes);
  return sent == static_cast<ssize_t>(words.size());
}

const ServiceManager* serviceManager() {
  static const std::unique_ptr<ServiceManager> manager = fromEnvironment();
  return manager.get();
}

}  // namespace dtf
