#pragma once

// Reports a task's state to its service manager (common/base/service_manager.h) and feeds the
// watchdog.

#include <kj/async.h>
#include <kj/timer.h>

#include <functional>
#include <string>
#include <vector>

#include "common/base/metrics.h"
#include "common/base/service_manager.h"

namespace dtf::daemons {

// The result of a look at all loops of a task.
struct ServiceLook {
  std::string status;  // for a person
  // The task is starting or ending. The timeouts of the cluster file bound that time; the manager
  // must not cut it short while the loops turn.
  bool takes_its_time = false;
  // Why the task can't do its work yet, or no longer. Empty: it can.
  std::string not_ready{};
  std::vector<Metric> metrics{};  // of its work
};

using ServiceLooker = std::function<kj::Promise<ServiceLook>()>;
// Returns the result of `look`. An error of `look` means that the task is ending: its loop still
// turns.
kj::Promise<ServiceLook> lookAt(const ServiceLooker& look);

// Looks twice in each watchdog period, and at least every kLookEvery. Feeds the watchdog after each
// finished look: a hanging loop, this one or one that the look queries, lets it expire. Does
// nothing without a manager.
// Borrows: `timer` and `manager` (null: there is none), which must outlive this.
// Threads: loop-thread only.
// Blocks: never.
class ServiceWatch {
 public:
  static constexpr Duration kLookEvery = std::chrono::seconds(5);

  ServiceWatch(kj::Timer& timer, const ServiceManager* manager, ServiceLooker look);

  // Tells the manager that the task ends.
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
