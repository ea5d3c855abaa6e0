#include "common/net/damage.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/net/log_limiter.h"

namespace dtf::net {

namespace {

// Log lines per second: a link that damages every message reconnects ten times a second.
constexpr uint32_t kDamageLinesPerSecond = 20;

struct Damage {
  Mutex mutex;
  uint64_t messages DTF_GUARDED_BY(mutex) = 0;
  LogLimiter<1, kDamageLinesPerSecond> limiter DTF_GUARDED_BY(mutex);
};

Damage& ofThisProcess() {
  static Damage damage;
  return damage;
}

}  // namespace

void noteDamage(std::string_view peer, std::string_view reason) {
  Damage& damage = ofThisProcess();
  std::optional<uint64_t> suppressed;
  {
    MutexLock lock(damage.mutex);
    ++damage.messages;
    suppressed = damage.limiter.allow(0, SystemClock().now());
  }
  if (suppressed)
    log::warning("event=message_damaged peer=\"{}\" reason=\"{}\" suppressed={}", peer, reason,
                 *suppressed);
}

uint64_t damagedMessages() {
  Damage& damage = ofThisProcess();
  MutexLock lock(damage.mutex);
  return damage.messages;
}

}  // namespace dtf::net
