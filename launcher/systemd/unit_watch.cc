#include "launcher/systemd/unit_watch.h"

#include <fmt/format.h>

#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf::launcher {

UnitWatch::UnitWatch(std::string job, Ask ask, const Clock& clock)
    : job_(std::move(job)), ask_(std::move(ask)), clock_(clock) {
  DTF_CHECK(ask_ != nullptr);
}

std::optional<std::vector<UnitState>> UnitWatch::look() {
  const TimePoint asked = clock_.now();
  try {
    std::vector<UnitState> states = ask_();
    silence_.clear();
    return states;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnavailable && error.code() != ErrorCode::kDeadline) throw;
    if (silence_.empty()) silent_since_ = asked;
    silence_ = error.message();
    if (clock_.now() < silent_since_ + kSilentMax) return std::nullopt;
    throw Error(
        ErrorCode::kUnavailable,
        fmt::format("for {:.0f} s systemd has not reported the state of the units dtf-{}@*: {}\n"
                    "  they go on, and this dtf-launch ends: dtf-launch attach shows them again, "
                    "dtf-launch stop ends them",
                    toSeconds(clock_.now() - silent_since_), job_, silence_));
  }
}

}  // namespace dtf::launcher
