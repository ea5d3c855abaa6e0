#pragma once

// Messages of a task to its service manager: systemd, or another program with its protocol,
// sd_notify(3). A datagram with one word a line to the Unix socket named by NOTIFY_SOCKET:
//   READY=1                     the task serves, or is connected to every ps
//   STATUS=step 120 of 1000     for `systemctl status`
//   WATCHDOG=1                  its loops still run; see daemons/service_watch.h
//   EXTEND_TIMEOUT_USEC=N       it starts or stops, and needs N microseconds more
//   STOPPING=1                  it received a signal to stop

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

// The status of a failed task: "failed: MESSAGE"; if another task ended the job
// (ErrorTrait::kJobEnded), "failed with its job: MESSAGE". readFailedStatus() parses the status
// that the service manager shows; nullopt if it is no failure.
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

// Returns the time that the service manager waits for a WATCHDOG=1 before it kills process `self`,
// from the values of WATCHDOG_USEC and WATCHDOG_PID; zero if it does not watch that process.
// Errors: kUsage if a value is no number.
Duration watchdogPeriod(const char* usec, const char* pid, int self);

// Immutable after construction; thread-safe.
// Blocks: tell() for up to `patience` while the manager does not read.
class ServiceManager {
 public:
  // `socket` is an absolute path, or "@name" in the abstract name space.
  // Errors: kUsage for a name that is neither or is too long.
  ServiceManager(std::string socket, Duration watchdog);

  // Returns false if nothing listens there, or does not read in time. A lost message can have
  // consequences: the manager restarts a task that never was ready or that misses the watchdog.
  bool tell(std::string_view words, Duration patience = {}) const;

  // Zero if there is no watchdog.
  Duration watchdog() const { return watchdog_; }

 private:
  const std::string socket_;
  const Duration watchdog_;
};

// Returns the manager named in the environment; null if there is none, or if dtf-launch started the
// task, which then restarts it itself. Logs a warning for an unusable name.
const ServiceManager* serviceManager();

}  // namespace dtf
