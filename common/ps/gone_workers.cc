#include "common/ps/gone_workers.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/check.h"
#include "common/ps/answer.h"
#include "common/ps/membership.h"

namespace dtf::ps {

GoneWorkers::GoneWorkers(uint32_t workers, uint32_t needed, const Clock& clock)
    : needed_(needed), clock_(clock), workers_(workers) {
  DTF_CHECK(needed > 0 && needed <= workers);
}

void GoneWorkers::joined(uint32_t rank) {
  Worker& worker = workers_.at(rank);
  worker.joined_at = ++events_;
  worker.returning = worker.gone_at > 0 && clock_.now() < worker.return_by;
  worker.gone_at = 0;
}

void GoneWorkers::arrived(uint32_t rank) {
  workers_.at(rank).returning = false;
}

void GoneWorkers::gone(uint32_t rank, const std::string& why, Duration patience) {
  DTF_CHECK(!why.empty() && patience >= Duration{0});
  Worker& worker = workers_.at(rank);
  worker.gone_at = ++events_;
  worker.returning = false;
  worker.why = why;
  worker.since = clock_.now();
  worker.return_by = deadlineAfter(worker.since, patience);
}

std::vector<uint32_t> GoneWorkers::awaited(const HasContributed& has_contributed) const {
  std::vector<uint32_t> missed;
  for (uint32_t rank = 0; rank < workers_.size(); ++rank)
    if ((workers_[rank].gone_at > 0 || workers_[rank].returning) && !has_contributed(rank))
      missed.push_back(rank);
  if (workers_.size() - missed.size() >= needed_) return {};
  const TimePoint now = clock_.now();
  std::erase_if(missed, [&](uint32_t rank) { return now >= workers_[rank].return_by; });
  return missed;
}

std::optional<std::string> GoneWorkers::hopelessFor(uint32_t rank,
                                                    const HasContributed& has_contributed) const {
  const TimePoint now = clock_.now();
  uint32_t contributing = 0;
  std::string why;
  for (uint32_t other = 0; other < workers_.size(); ++other) {
    const Worker& worker = workers_[other];
    const bool given_up = worker.gone_at > workers_.at(rank).joined_at && now >= worker.return_by;
    if (!given_up || has_contributed(other)) {
      ++contributing;
      continue;
    }
    why += (why.empty() ? "" : "; ") + worker.why;
    if (worker.return_by > worker.since)
      why += fmt::format(", and did not return within {},",
                         secondsText(worker.return_by - worker.since));
  }
  if (contributing >= needed_) return std::nullopt;
  DTF_CHECK(!why.empty());
  return why;
}

}  // namespace dtf::ps
