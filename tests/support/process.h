#pragma once

// Real processes for tests: their output is captured, waits have a deadline, and the end of the
// test kills them in any case.

#include <sys/types.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace dtf::testing {

struct ProcessResult {
  int exit_code = -1;  // 128 + n for signal n; -1: still running at the deadline (and then killed)
  std::string out;     // stdout
  std::string err;     // stderr
};

// Owns: the process (and its process group) and two temporary files for its output.  The destructor
// kills the group.
// Threads: one.
// Blocks: wait() until the exit or the deadline. Deadlines are chosen for a fast idle machine and
// multiplied by kSlowest: only a hang may reach one.
class Process {
 public:
  Process(std::vector<std::string> argv, std::map<std::string, std::string> environment = {},
          std::string working_folder = {});
  ~Process();
  Process(Process&& other) noexcept;
  Process& operator=(Process&&) = delete;

  static constexpr int kSlowest = 4;

  pid_t pid() const { return pid_; }
  void signal(int number) const;  // to the process alone
  bool running();
  ProcessResult wait(std::chrono::seconds deadline);
  // Polls the output until `text` appears in it (true), or the process ends or the deadline passes
  // (false).
  bool waitForOutput(const std::string& text, std::chrono::seconds deadline);
  std::string out() const;
  std::string err() const;

 private:
  pid_t pid_ = -1;
  bool reaped_ = false;
  int status_ = 0;
  std::string out_path_, err_path_;
};

// Runs a process to its end.
ProcessResult runProcess(std::vector<std::string> argv,
                         std::chrono::seconds deadline = std::chrono::seconds(60),
                         std::map<std::string, std::string> environment = {},
                         std::string working_folder = {});

// A folder that is removed with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string write(const std::string& name,
                    const std::string& text) const;  // returns the file's path
  std::string read(const std::string& name) const;

 private:
  std::string path_;
};

}  // namespace dtf::testing
