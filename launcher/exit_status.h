#pragma once

// How a process ended.

#include <string>

#include "common/base/paused.h"

namespace dtf::launcher {

// Value type. Exactly one of the two says something: `signal` != 0 means killed by it.
struct ExitStatus {
  int code = 0;
  int signal = 0;
  bool memory_ran_out = false;  // killed while the kernel killed a process of this host for that
  std::string lost_host{};      // it was there, which is gone: how it ended there nobody knows
  bool operator==(const ExitStatus&) const = default;

  static ExitStatus fromWait(int wait_status);  // of waitpid()
  bool success() const { return code == 0 && signal == 0; }
  // The job was saved and left, to go on when the task is started again.
  bool paused() const { return code == kPausedExitCode && signal == 0; }
  bool wasToldToEnd() const;          // by SIGTERM or SIGINT, whether it handles them or not
  bool crashed() const;               // by a signal that nobody sends to end a process
  bool wasKilledFromOutside() const;  // by SIGKILL, and the kernel was not short of memory
  int shellCode() const;              // of a task that was lost with its host: 69, unavailable
  std::string text()
      const;  // "exited with code 65 (bad_data)", "was killed by SIGSEGV (signal 11)"
};

std::string signalName(int signal);  // "SIGSEGV"

// The word for an exit code of USING.md's table, as in errorCodeName(); empty for any other code.
std::string exitCodeWord(int code);

// The exit code of an errorCodeName(); 1 for any other word.
int exitCodeOfWord(const std::string& word);

}  // namespace dtf::launcher
