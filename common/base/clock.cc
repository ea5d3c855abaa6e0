#include "common/base/clock.h"

namespace dtf {

TimePoint SystemClock::now() const {
  return std::chrono::steady_clock::now();
}

double toSeconds(Duration d) {
  return std::chrono::duration<double>(d).count();
}

Duration fromSeconds(double seconds) {
  if (!(seconds > 0)) return Duration{0};
  if (seconds >= toSeconds(kDurationMax)) return kDurationMax;
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

}  // namespace dtf
