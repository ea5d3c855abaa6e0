#include "common/base/ids.h"

#include <sys/random.h>

#include <algorithm>
#include <atomic>
#include <chrono>

#include "common/base/check.h"

namespace dtf {

std::string_view jobName(JobKind job) {
  return job == JobKind::kPs ? "ps" : "worker";
}

std::optional<JobKind> parseJobName(std::string_view job_name) {
  if (job_name == "ps") return JobKind::kPs;
  if (job_name == "worker") return JobKind::kWorker;
  return std::nullopt;
}

std::string TaskId::name() const {
  return std::string(jobName(job)) + "/" + std::to_string(index);
}

std::string TaskId::device() const {
  return "/job:" + std::string(jobName(job)) + "/task:" + std::to_string(index);
}

std::optional<uint32_t> ShardHosts::shardOf(TaskId task) const {
  if (task.index >= (task.job == JobKind::kPs ? ps : workers)) return std::nullopt;
  return exchanged(task.job == JobKind::kPs ? task.index : ps + task.index);
}

std::string_view ShardHosts::noun() const {
  if (workers == 0) return "ps";
  return ps == 0 ? "workers" : "ps and workers";
}

namespace {

// Random for each process, then incremented: two values of one process always differ.
uint8_t nextTie() {
  static std::atomic<uint8_t> next = [] {
    uint8_t first = 0;
    DTF_CHECK(::getrandom(&first, sizeof first, 0) == sizeof first);
    return first;
  }();
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

Incarnation Incarnation::ofNow(uint32_t attempt) {
  DTF_CHECK(attempt <= kAttemptMax);
  using Ticks = std::chrono::duration<int64_t, std::ratio<1, 256>>;
  constexpr std::chrono::sys_days kBegin = std::chrono::year{2020} / 1 / 1;
  constexpr int64_t kTicksMax = (int64_t{1} << (kAttemptShift - kTicksShift)) - 1;
  const auto since = std::chrono::floor<Ticks>(std::chrono::system_clock::now() - kBegin);
  // At least 1, so that the value isn't 0 where a clock stands before 2020.
  const int64_t ticks = std::clamp<int64_t>(since.count(), 1, kTicksMax);
  return of(attempt, static_cast<uint64_t>(ticks), nextTie());
}

}  // namespace dtf
