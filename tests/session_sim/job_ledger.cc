#include "tests/session_sim/job_ledger.h"

#include <fmt/format.h>

namespace dtf::sim {

std::string JobLedger::taken(int32_t job) {
  if (job <= taken_ || job > put_)
    return fmt::format("took job {} after job {}, of {} that were put in", job, taken_, put_);
  const int32_t missing = job - taken_ - 1;
  if (missing > doubtful_)
    return fmt::format("took job {} after job {}: {} are missing, of which {} may be", job, taken_,
                       missing, doubtful_);
  doubtful_ -= missing;
  taken_ = job;
  return {};
}

std::string JobLedger::ended() const {
  if (put_ - taken_ <= doubtful_) return {};
  return fmt::format("took the jobs up to {}, of {} that were put in, {} of them perhaps", taken_,
                     put_, doubtful_);
}

}  // namespace dtf::sim
