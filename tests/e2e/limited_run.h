#pragma once

// Runs a program under limits and measures its use of memory and time.

#include <string>
#include <vector>

namespace dtf::testing {

// Limits for a program that reads any file (SECURITY.md, "Files").
inline constexpr long kMemoryMaxKib = 512 * 1024;
inline constexpr double kSecondsMax = 10;

struct Spent {
  int exit_code = -1;  // 128 + the signal of one that was killed
  long memory_kib = 0;
  double seconds = 0;  // of the processor
  std::string said;    // stdout and stderr
};

// Runs `argv` in `folder`. A program that uses more than twice kSecondsMax of the processor, or
// waits for a minute, is killed. `may_read_all` false: root is held to the permissions of files, as
// others are.
Spent runLimited(std::vector<std::string> argv, const std::string& folder,
                 bool may_read_all = true);

}  // namespace dtf::testing
