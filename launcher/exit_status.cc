#include "launcher/exit_status.h"

#include <sys/wait.h>

#include <array>
#include <csignal>
#include <cstring>

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf::launcher {

namespace {

constexpr std::array kCodes = {
    ErrorCode::kTrainingFailed, ErrorCode::kUsage,     ErrorCode::kBadData,
    ErrorCode::kUnavailable,    ErrorCode::kInternal,  ErrorCode::kCannotWrite,
    ErrorCode::kPermission,     ErrorCode::kBadConfig, ErrorCode::kDeadline};

}  // namespace

ExitStatus ExitStatus::fromWait(int wait_status) {
  DTF_CHECK_MSG(WIFSIGNALED(wait_status) || WIFEXITED(wait_status), std::to_string(wait_status));
  if (WIFSIGNALED(wait_status)) return ExitStatus{0, WTERMSIG(wait_status)};
  return ExitStatus{WEXITSTATUS(wait_status), 0};
}

bool ExitStatus::wasToldToEnd() const {
  return shellCode() == 128 + SIGTERM || shellCode() == 128 + SIGINT;
}

bool ExitStatus::crashed() const {
  return signal != 0 && signal != SIGKILL && signal != SIGTERM;
}

bool ExitStatus::wasKilledFromOutside() const {
  return signal == SIGKILL && !memory_ran_out && lost_host.empty();
}

int ExitStatus::shellCode() const {
  if (!lost_host.empty()) return exitCode(ErrorCode::kUnavailable);
  return signal != 0 ? 128 + signal : code;
}

std::string ExitStatus::text() const {
  if (!lost_host.empty()) return "was lost with its host, " + lost_host;
  if (signal != 0)
    return "was killed by " + signalName(signal) + " (signal " + std::to_string(signal) + ")" +
           // Of mapped files (data/byte_block.h).
           (signal == SIGBUS ? ", as when a data file is truncated while it is read" : "") +
           (memory_ran_out ? ", probably by the kernel, for lack of memory: see dmesg" : "");
  const std::string word = exitCodeWord(code);
  return "exited with code " + std::to_string(code) + (word.empty() ? "" : " (" + word + ")");
}

std::string signalName(int signal) {
  DTF_CHECK(signal > 0);
  const char* name = ::sigabbrev_np(signal);
  return name == nullptr ? "signal " + std::to_string(signal) : std::string("SIG") + name;
}

std::string exitCodeWord(int code) {
  if (code == kPausedExitCode) return "paused";
  for (const ErrorCode known : kCodes)
    if (exitCode(known) == code) return std::string(errorCodeName(known));
  return "";
}

int exitCodeOfWord(const std::string& word) {
  for (const ErrorCode known : kCodes)
    if (errorCodeName(known) == word) return exitCode(known);
  return exitCode(ErrorCode::kTrainingFailed);
}

}  // namespace dtf::launcher
