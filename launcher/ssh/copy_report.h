#pragma once

// What a person is told of copies that are on their way to the hosts of a launch.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "launcher/ssh/agent_link.h"

namespace dtf::launcher {

// Of all hosts together.
struct CopyTotals {
  size_t hosts = 0;  // that lack something
  uint64_t lacking_bytes = 0, stored_bytes = 0;
  void add(const CopyProgress& host);
};

// Says something when it takes long, every kEvery, and how it was at the end.
// Borrows: `clock` (must outlive this).
// Threads: thread-compatible.
class CopyReport {
 public:
  static constexpr Duration kEvery = std::chrono::seconds(5);

  CopyReport(const Clock& clock, std::function<void(const std::string& text)> tell)
      : clock_(clock), tell_(std::move(tell)), began_(clock.now()), told_(began_) {}

  // So much of the files has its digest.
  void digests(uint64_t done, uint64_t bytes);
  // `all`: every host has what it needs; told once.
  void copies(const CopyTotals& totals, bool all);

 private:
  bool isTime();

  const Clock& clock_;
  const std::function<void(const std::string&)> tell_;
  const TimePoint began_;
  TimePoint told_;
  std::optional<TimePoint> stored_;  // when all was there; the tasks' sockets are opened after it
  bool ended_ = false;
};

}  // namespace dtf::launcher
