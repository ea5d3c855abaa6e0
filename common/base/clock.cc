#include "common/base/clock.h"

namespace dtf {

TimePoint SystemClock::now() const {
  return std::chrono::steady_clock::now();
}

double toSeconds(Duration d) {
  return std::chrono::duration<double>(d).count();
}

}  // namespace dtf
