#pragma once

// The log files of several tasks as one stream, in the order of time.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtf::launcher {

struct LogLine {
  size_t source = 0;  // counts in the order of add()
  std::string text;   // as in the file, without "\n"
};

constexpr size_t kTimeBytes = 29;  // of the time that a line starts with

// Milliseconds since 1970 of the time that a line starts with ("2026-03-01T10:11:12.345+01:00");
// nullopt: it starts otherwise.
std::optional<int64_t> timeOfLine(std::string_view line);

inline constexpr int64_t kAnyTime = INT64_MAX;

// A line without a time belongs to the one before it in its file.
// Owns: the open files, and of each the line that comes next.
// Threads: thread-compatible.
// Blocks: on the disk.
class LogMerge {
 public:
  // A longer line is handed over in pieces.
  static constexpr size_t kLineBytesMax = size_t{1} << 20;

  // Errors: kBadData when it can't be opened, or is no regular file.
  void add(const std::filesystem::path& file);

  // Hands over what the files hold now, of lines before the time `until`: what others were slower
  // to write can still come before the rest. `to_the_end`: all, also a last line without its "\n".
  // Call again for what was written since.
  void read(bool to_the_end, int64_t until, const std::function<void(const LogLine&)>& on_line);

 private:
  struct Source {
    std::ifstream stream;
    std::string partial;              // a line whose end has not been written yet
    std::optional<std::string> next;  // the line to come
    int64_t time = 0;                 // of `next`
  };
  static void fill(Source& source, bool to_the_end);
  static bool readLine(Source& source);

  std::vector<Source> sources_;
};

}  // namespace dtf::launcher
