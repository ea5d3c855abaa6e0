#include "launcher/restart_policy.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf::launcher {

namespace {

constexpr int kUsage = 2;

}  // namespace

bool isWorthRestarting(const ExitStatus& status) {
  if (status.success() || status.wasToldToEnd()) return false;
  if (status.signal != 0) return true;
  const std::array never = {kUsage,
                            exitCode(ErrorCode::kTrainingFailed),
                            exitCode(ErrorCode::kBadData),
                            exitCode(ErrorCode::kCannotWrite),
                            exitCode(ErrorCode::kPermission),
                            exitCode(ErrorCode::kBadConfig),
                            exitCode(ErrorCode::kDeadline)};
  return std::find(never.begin(), never.end(), status.code) == never.end();
}

std::optional<Duration> RestartPolicy::onFailure(const ExitStatus& status,
                                                 std::optional<Duration> ran, TimePoint now) {
  DTF_CHECK(!status.success());
  if (!ran || !isWorthRestarting(status)) return std::nullopt;
  refill(now);
  if (spent_ + 1 > limits_.max) return std::nullopt;
  spent_ += 1;
  ++restarts_;
  // It would have gone on but for somebody else, so the next process may.
  if (status.wasKilledFromOutside()) return drawPause(1);
  in_a_row_ = *ran >= limits_.pause_max ? 1 : in_a_row_ + 1;
  return drawPause(in_a_row_);
}

uint32_t RestartPolicy::spent() const {
  DTF_CHECK(spent_ >= 0 && spent_ <= limits_.max);
  return static_cast<uint32_t>(std::ceil(spent_));
}

void RestartPolicy::refill(TimePoint now) {
  DTF_CHECK(now >= spent_at_);
  const double back = limits_.max * toSeconds(now - spent_at_) / toSeconds(limits_.refill);
  spent_ = std::max(0.0, spent_ - back);
  spent_at_ = now;
}

// Uniform below a bound that doubles with each failure in a row; never less than pause_min.
Duration RestartPolicy::drawPause(uint32_t in_a_row) {
  DTF_CHECK(in_a_row > 0);
  const double bound = std::min(toSeconds(limits_.pause_max),
                                toSeconds(limits_.pause_min) * std::exp2(std::min(in_a_row, 32U)));
  return std::max(limits_.pause_min, fromSeconds(random_.uniform() * bound));
}

}  // namespace dtf::launcher
