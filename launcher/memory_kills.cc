#include "launcher/memory_kills.h"

#include <csignal>
#include <fstream>
#include <string>
#include <utility>

namespace dtf::launcher {

MemoryKills::MemoryKills(const Clock& clock, std::filesystem::path vmstat)
    : clock_(clock), vmstat_(std::move(vmstat)), seen_(count()) {}

// Of the host and all its memory cgroups, since it started.
uint64_t MemoryKills::count() const {
  std::ifstream file(vmstat_);
  std::string name;
  uint64_t count = 0;
  while (file >> name >> count)
    if (name == "oom_kill") return count;
  return 0;
}

void MemoryKills::look() {
  const TimePoint now = clock_.now();
  if (unexplained_ > 0 && now - risen_ > kEndWithin) unexplained_ = 0;  // somebody else's
  const uint64_t newest = count();
  if (newest <= seen_) return;
  unexplained_ += newest - seen_;
  seen_ = newest;
  risen_ = now;
}

ExitStatus MemoryKills::explained(ExitStatus status) {
  look();
  if (status.signal != SIGKILL || unexplained_ == 0) return status;
  --unexplained_;
  status.memory_ran_out = true;
  return status;
}

}  // namespace dtf::launcher
