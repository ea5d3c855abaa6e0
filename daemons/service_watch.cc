#include "daemons/service_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/net/timer.h"

namespace dtf::daemons {

namespace {

// Half a period, as sd_watchdog_enabled(3) recommends.
Duration lookEvery(const ServiceManager* manager) {
  const bool watched = manager != nullptr && manager->watchdog() > Duration{0};
  return watched ? std::clamp(manager->watchdog() / 2, Duration{1}, ServiceWatch::kLookEvery)
                 : ServiceWatch::kLookEvery;
}

}  // namespace

kj::Promise<ServiceLook> lookAt(const ServiceLooker& look) {
  return kj::evalNow([&look] { return look(); }).catch_([](kj::Exception&&) {
    return ServiceLook{"ending", true, "it ends"};
  });
}

ServiceWatch::ServiceWatch(kj::Timer& timer, const ServiceManager* manager, ServiceLooker look)
    : timer_(timer), manager_(manager), every_(lookEvery(manager)), look_(std::move(look)) {
  DTF_CHECK(look_ != nullptr && every_ > Duration{0});
  if (manager_ != nullptr) watching_ = watch().eagerlyEvaluate(nullptr);
}

kj::Promise<void> ServiceWatch::watch() {
  return timer_.afterDelay(net::toKj(every_))
      .then([this] { return lookAt(look_); })
      .then([this](const ServiceLook& look) {
        tell(look);
        return watch();
      });
}

void ServiceWatch::tell(const ServiceLook& look) const {
  DTF_CHECK(manager_ != nullptr);
  std::string words = statusWord(look.status) + "\n";
  if (manager_->watchdog() > Duration{0}) words += "WATCHDOG=1\n";
  if (stopping_ || look.takes_its_time) {
    const Duration more = std::max(manager_->watchdog(), 3 * every_);
    words += fmt::format("EXTEND_TIMEOUT_USEC={}\n",
                         std::chrono::duration_cast<std::chrono::microseconds>(more).count());
  }
  manager_->tell(words);
}

void ServiceWatch::stopping() {
  stopping_ = true;
  if (manager_ != nullptr) manager_->tell("STOPPING=1");
}

}  // namespace dtf::daemons
