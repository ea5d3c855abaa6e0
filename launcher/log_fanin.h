#pragma once

// The output of all tasks: whole into one file a task, and as prefixed lines on the console.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/file.h"
#include "common/base/ids.h"
#include "launcher/line_splitter.h"

namespace dtf::launcher {

// "worker-1.2.log": task worker/1 in the second launch of its run directory.
std::string logFileName(TaskId id, int attempt);

// The highest that the logs of tasks in `folder` have; 0 where there are none.
int newestAttempt(const std::filesystem::path& folder);

// One more than the highest that any log file in `folder` has, that of a launch that was refused
// too.
int nextAttempt(const std::filesystem::path& folder);

// Owns: the log files, the last kTailLines lines of each task.
// Threads: loop-thread only.
// Blocks: on the disk of the log files.
// Errors: add() kCannotWrite, for a task's first process. A disk that fills up later costs what
// comes until it has room again; the file then says how much it lacks, and the console says both.
class LogFanin {
 public:
  static constexpr size_t kTailLines = 20;
  static constexpr size_t kLineBytesMax = 4096;  // of a line on the console; files have it whole

  // `on_line` takes finished lines for the console, without "\n", and what they begin with there,
  // which may be coloured.
  using OnLine = std::function<void(std::string_view line, std::string_view prefix)>;

  // `folder` exists. Prefixes are as wide as the longest name of `tasks`. `details`: lines that are
  // no warning go to the console too.
  LogFanin(std::filesystem::path folder, std::vector<TaskId> tasks, bool color, bool details,
           OnLine on_line);
  ~LogFanin();

  // A process of `task`, which counts in `tasks`, has been started. A file that is there already is
  // never written to: `attempt` is one that has none. The file of a later process of the task may
  // come later: a job that goes on is worth more than its log.
  void add(size_t task, int attempt);

  // What the process has written to its stdout and stderr.
  void feed(size_t task, std::string_view bytes);

  // The process has ended: a last line without "\n" is one, too. Closes the file.
  void finish(size_t task);

  // The last lines, oldest first.
  std::vector<std::string> tail(size_t task) const;
  std::filesystem::path file(size_t task) const;  // empty before add()

 private:
  struct Stream;
  static bool open(Stream& stream);
  void warnOfLoss(const Stream& stream);
  void save(Stream& stream, std::string_view bytes);
  void onLine(Stream& stream, std::string_view line, bool cut);

  const std::filesystem::path folder_;
  const bool details_;
  const OnLine on_line_;
  std::vector<std::unique_ptr<Stream>> streams_;  // one a task
};

}  // namespace dtf::launcher
