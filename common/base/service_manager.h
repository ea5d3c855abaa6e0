#pragma once

// What a task tells the service manager that started it: systemd, or whoever speaks its protocol,
// sd_notify(3). A datagram of words, one a line, to the Unix socket named by NOTIFY_SOCKET:
//   READY=1                     the task serves, or is connected to every ps
//   STATUS=step 120 of 1000     for `systemctl status`
//   WATCHDOG=1                  its loops still turn; see daemons/service_watch.h
//   EXTEND_TIMEOUT_USEC=N       it starts or stops, and needs that much longer
//   STOPPING=1                  it was told to end

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/error.h"

namespace dtf {

// "STATUS=TEXT" in one line of at most kServiceStatusBytesMax bytes.
inline constexpr size_t kServiceStatusBytesMax = 400;
std::string statusWord(std::string_view text);

// The status of a task that has failed: "failed: MESSAGE", of one that another task has ended
// (ErrorTrait::kJobEnded) "failed with its job: MESSAGE". readFailedStatus() is the way back, from
// what the service manager shows of the task; nullopt: it has not said that it failed.
std::string failedStatus(const Error& error);
struct FailedStatus {
  std::string message;
  bool job_ended = false;
};
std::optional<FailedStatus> readFailedStatus(std::string_view status);

// The status of a chief that has reported the job's result at `step`: "done: the result of step N".
// isResultStatus() recognizes it: the job is done, however that process ends.
std::string resultStatus(uint64_t step);
bool isResultStatus(std::string_view status);

// Of WATCHDOG_USEC and WATCHDOG_PID, as environment variables: how long the service manager waits
// for a WATCHDOG=1 before it kills process `self`. Zero: it doesn't watch that process.
// Errors: kUsage for what is no number.
Duration watchdogPeriod(const char* usec, const char* pid, int self);

// Immutable after construction; thread-safe.
// Blocks: tell() for `patience` while the manager does not read.
class ServiceManager {
 public:
  // `socket` is an absolute path, or "@name" in the abstract name space.
  // Errors: kUsage for a name that is neither or is too long.
  ServiceManager(std::string socket, Duration watchdog);

  // False: nobody listens there, or not in time. What the manager makes of a word that is lost is
  // its affair: it kills and starts again who never was ready, or misses the watchdog.
  bool tell(std::string_view words, Duration patience = {}) const;

  // Zero: no watchdog.
  Duration watchdog() const { return watchdog_; }

 private:
  const std::string socket_;
  const Duration watchdog_;
};

// The one that this process's environment names; null where there is none, or where dtf-launch has
// started the task: each task has one that starts it again. A name that can't be used is a warning.
const ServiceManager* serviceManager();

}  // namespace dtf
