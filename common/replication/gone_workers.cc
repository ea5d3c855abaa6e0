#include "common/replication/gone_workers.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/check.h"
#include "common/replication/answer.h"
#include "common/replication/membership.h"

namespace dtf::replication {

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

std::vector<uint32_t> GoneWorkers::awaited(const HasContributed& has_contributed,
                                           size_t needed) const {
  DTF_CHECK(needed > 0 && needed <= workers_.size());
  std::vector<uint32_t> missed;
  for (uint32_t rank = 0; rank < workers_.size(); ++rank)
    if ((workers_[rank].gone_at > 0 || workers_[rank].returning) && !has_contributed(rank))
      missed.push_back(rank);
  if (workers_.size() - missed.size() >= needed) return {};
  const TimePoint now = clock_.now();
  std::erase_if(missed, [&](uint32_t rank) { return now >= workers_[rank].return_by; });
  return missed;
}

std::optional<std::string> GoneWorkers::givenUp(uint32_t rank) const {
  const Worker& worker = workers_.at(rank);
  if (worker.gone_at == 0 || clock_.now() < worker.return_by) return std::nullopt;
  if (worker.return_by == worker.since) return worker.why;
  return fmt::format("{}, and did not return within {},", worker.why,
                     secondsText(worker.return_by - worker.since));
}

std::optional<std::string> GoneWorkers::hopelessFor(uint32_t rank,
                                                    const HasContributed& has_contributed,
                                                    size_t needed) const {
  DTF_CHECK(needed > 0 && needed <= workers_.size());
  uint32_t contributing = 0;
  std::string why;
  for (uint32_t other = 0; other < workers_.size(); ++other) {
    const bool knows = workers_[other].gone_at <= workers_.at(rank).joined_at;
    const std::optional<std::string> given_up = knows ? std::nullopt : givenUp(other);
    if (!given_up || has_contributed(other)) {
      ++contributing;
    } else {
      why += (why.empty() ? "" : "; ") + *given_up;
    }
  }
  if (contributing >= needed) return std::nullopt;
  DTF_CHECK(!why.empty());
  return why;
}

}  // namespace dtf::replication
