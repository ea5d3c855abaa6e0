#pragma once

// How the units of a job are, asked again and again. One answer may be missing, as while systemd is
// started anew at an update of the host: the units go on meanwhile.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "launcher/systemd/service_control.h"

namespace dtf::launcher {

// Borrows: `clock` (must outlive this).
// Threads: thread-compatible.
// Blocks: on what it asks.
class UnitWatch {
 public:
  // As long as one call of systemctl may take.
  static constexpr Duration kSilentMax = std::chrono::seconds(60);
  using Ask = std::function<std::vector<UnitState>()>;

  // `ask`: as UnitJob::states(), of the units of `job`.
  UnitWatch(std::string job, Ask ask, const Clock& clock);

  // nullopt: there is no answer this time, and silence() says why.
  // Errors: kUnavailable once there has been none for kSilentMax; what is neither that nor
  // kDeadline.
  std::optional<std::vector<UnitState>> look();
  // Of the last look; empty: it had an answer.
  const std::string& silence() const { return silence_; }

 private:
  const std::string job_;
  const Ask ask_;
  const Clock& clock_;
  std::string silence_;
  TimePoint silent_since_{};
};

}  // namespace dtf::launcher
