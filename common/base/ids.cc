#include "common/base/ids.h"

#include <sys/random.h>

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

Incarnation Incarnation::random(uint32_t attempt) {
  DTF_CHECK(attempt <= kAttemptMax);
  constexpr uint64_t kRandomBits = (uint64_t{1} << 40) - 1;
  uint64_t value = 0;
  while (value == 0) {
    DTF_CHECK(::getrandom(&value, sizeof value, 0) == sizeof value);
    value &= kRandomBits;
  }
  return Incarnation{(uint64_t{attempt} << 40) | value};
}

}  // namespace dtf
