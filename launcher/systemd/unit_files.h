#pragma once

// What the far hosts of a job of units write for people to look at, brought to the run directory
// where the job was started: logs, events, timelines, and the summary of a chief.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "common/base/file.h"
#include "common/base/ids.h"
#include "launcher/ssh/host_files.h"
#include "launcher/ssh/run_files.h"

namespace dtf::launcher {

// Owns: the right to bring files, which one dtf-launch has at a time in a run directory.
// Threads: thread-compatible.
// Blocks: on the disk.
class UnitFiles {
 public:
  static constexpr uint64_t kLogBytesMax = uint64_t{1}
                                           << 30;  // of each log; the rest stays where it is

  // `tell` gets a line about each file that is left out. `run_dir` is there.
  UnitFiles(std::filesystem::path run_dir, std::function<void(const std::string&)> tell);

  // Names of the logs that a host may send, and whether the chief is there.
  void expect(const std::string& host, const std::vector<std::string>& logs, bool has_chief);
  // Whether this one brings them: another dtf-launch does where it doesn't.
  bool isMine();
  const std::string& mark() const { return writer_.mark(); }
  // What is there of the files that the host is to send, see StatesQuestion; of the events too
  // where `with_events`.
  FileSizes kept(const std::string& host, bool with_events) const;
  // Of all that was brought: it grows as long as something comes.
  uint64_t bytes() const { return bytes_; }
  // What a full disk has no room for is told once, and comes again later.
  // Errors: kBadData for a file that is none of the host's.
  void take(const std::string& host, const FilePiece& piece);

 private:
  struct Expected {
    std::vector<std::string> logs;
    bool has_chief = false;
  };
  void write(const Expected& expected, const std::string& host, const FilePiece& piece);
  void append(const std::string& host, const FilePiece& piece);

  const std::filesystem::path run_dir_;
  const RunFilesWriter writer_;
  const std::function<void(const std::string&)> tell_;
  HostFiles files_;
  std::map<std::string, Expected> expected_;
  Fd lock_;
  bool is_full_ = false;
  uint64_t summary_ = 0;  // the checksum of the one that is here; 0: none was brought
  uint64_t bytes_ = 0;
};

}  // namespace dtf::launcher
