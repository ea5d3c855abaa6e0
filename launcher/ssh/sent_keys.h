#pragma once

// The keys of the tasks of one host, on their way there, and again whenever they were renewed.

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "launcher/ssh/messages.h"

namespace dtf::launcher {

// What each task is and whom it trusts, and nothing else: neither the CA's key nor that of another
// host's task leaves this one.
// Owns: what it knows of the files.
// Threads: thread-compatible.
// Blocks: on the files, a few KiB.
class SentKeys {
 public:
  static constexpr Duration kLookEvery = std::chrono::seconds(5);

  // `folder` empty: the job has no keys.
  SentKeys(const std::filesystem::path& folder, std::string job, std::vector<TaskId> tasks);

  // As they are now.
  // Errors: kBadData for one that is missing or too large.
  SentFiles read();

  // The files that have changed since they were read last, if they are good: all keys of the host
  // are checked as their tasks will. Looks at them every kLookEvery at most. Empty: nothing is new.
  // Errors: those of net::TlsKeys, once for each change.
  SentFiles renewed(TimePoint now);

 private:
  struct Stamp {
    uint64_t inode = 0;
    int64_t seconds = 0;
    int64_t nanoseconds = 0;
    int64_t bytes = -1;
    bool operator==(const Stamp&) const = default;
  };
  using Stamps = std::map<std::filesystem::path, Stamp>;
  Stamps stamps() const;

  const std::filesystem::path folder_;
  const std::string job_;
  const std::vector<TaskId> tasks_;
  std::vector<std::filesystem::path> files_;
  Stamps seen_;
  SentFiles sent_;
  std::optional<TimePoint> looked_;
};

}  // namespace dtf::launcher
