#pragma once

// A task under a service manager (common/base/service_manager.h): feeds its watchdog, and says how
// far the task is.

#include <kj/async.h>
#include <kj/timer.h>

#include <functional>
#include <string>
#include <vector>

#include "common/base/metrics.h"
#include "common/base/service_manager.h"

namespace dtf::daemons {

// What a task says of itself, after a look at the loops that it is made of.
struct ServiceLook {
  std::string status;  // for a person
  // It starts, or ends: that has its own deadlines (timeouts in the cluster file), which the
  // manager's are not to cut short while the loops turn.
  bool takes_its_time = false;
  // Why it can't do yet, or no more, what it is for. Empty: it can.
  std::string not_ready{};
  std::vector<Metric> metrics{};  // of what it does
};

using ServiceLooker = std::function<kj::Promise<ServiceLook>()>;
// What `look` finds. It may fail: a task that ends doesn't answer any more, and its loop turns
// still.
kj::Promise<ServiceLook> lookAt(const ServiceLooker& look);

// Looks some times within each watchdog period, and every kLookEvery at least. The watchdog gets
// its word when a look has ended, so whoever hangs, this loop or one that the look asks, misses it.
// Without a manager it does nothing.
// Borrows: `timer` and `manager` (null: there is none), which must outlive this.
// Threads: loop-thread only.
// Blocks: never.
class ServiceWatch {
 public:
  static constexpr Duration kLookEvery = std::chrono::seconds(5);

  ServiceWatch(kj::Timer& timer, const ServiceManager* manager, ServiceLooker look);

  // The task was told to end.
  void stopping();

 private:
  kj::Promise<void> watch();
  void tell(const ServiceLook& look) const;

  kj::Timer& timer_;
  const ServiceManager* const manager_;
  const Duration every_;
  const ServiceLooker look_;
  bool stopping_ = false;
  kj::Promise<void> watching_ = nullptr;
};

}  // namespace dtf::daemons
