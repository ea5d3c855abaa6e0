#pragma once

// What the hosts of a launch may put into the launcher's run directory (run_files.h), each within
// limits of its own: a host that is wrong, or worse, costs the others nothing.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "launcher/ssh/run_files.h"

namespace dtf::launcher {

struct HostFilesLimits {
  size_t files_max = kRunFilesMax;         // of one host
  uint64_t bytes_max = uint64_t{8} << 30;  // of its files together
  size_t words_max = 8;                    // of files that are left out
};

// Owns: what it knows of each file.
// Borrows: `writer` (must outlive this).
// Threads: thread-compatible.
// Blocks: on the disk.
class HostFiles {
 public:
  // `tell` gets a line about each file that is left out, for people.
  HostFiles(const RunFilesWriter& writer, std::function<void(const std::string&)> tell,
            const HostFilesLimits& limits = {})
      : writer_(writer), tell_(std::move(tell)), limits_(limits) {}

  // A file that does not fit is left out from then on, until it begins anew; the rest goes on. A
  // file of which another host has sent bytes is that host's.
  // Errors: kBadData for a piece that may not travel: its host is none of ours.
  void take(const std::string& host, const FilePiece& piece);

 private:
  struct Host {
    std::map<std::string, uint64_t> sizes;  // by name
    uint64_t bytes = 0;
    std::set<std::string> left_out;  // at most files_max
    size_t told = 0;
  };
  void leaveOut(const std::string& host, const std::string& name, const std::string& why);

  const RunFilesWriter& writer_;
  const std::function<void(const std::string&)> tell_;
  const HostFilesLimits limits_;
  std::map<std::string, Host> hosts_;
  std::map<std::string, std::string> host_of_;  // by name
};

}  // namespace dtf::launcher
