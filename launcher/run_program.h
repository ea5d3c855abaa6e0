#pragma once

// A program of the system that is asked one thing and answers: scontrol, sbatch.

#include <string>
#include <vector>

#include "common/base/clock.h"
#include "launcher/exit_status.h"

namespace dtf::launcher {

struct ProgramAnswer {
  ExitStatus status;
  std::string out;
  std::string err;
};

inline constexpr size_t kProgramInputBytesMax = 65536;  // what a pipe holds

// Runs `argv`, found in PATH, with `input` as its stdin, of at most kProgramInputBytesMax.
// The signals of the process stay as they are; SIGCHLD must not be ignored, for then there is no
// exit code. Blocks: until it has ended, `within` at most; what it has started may live on. Errors:
// those of Spawner::run(); kUnavailable for one that reads nothing, where pipes are short;
// kDeadline, when it is killed; kBadData for an answer of more than 1 MiB.
ProgramAnswer runProgram(const std::vector<std::string>& argv, const std::string& input,
                         Duration within);

}  // namespace dtf::launcher
