#include "common/train/job_size.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/check.h"
#include "common/base/ids.h"
#include "common/base/text.h"
#include "common/optimizer/optimizer.h"
#include "common/replication/replication_rules.h"

namespace dtf::train {

namespace {

// In /dev/shm, each with the slots: the newest one that all ps have, and the next.
constexpr uint64_t kSnapshotCopies = 2;

// Returns the copies of parameters that a ps sends: rounded ones of at most four versions, each
// half as large; or, with a lossy form, the parameters that its workers have, the same in a sync
// job without backup workers.
uint64_t copiesSent(const cluster::ReplicationSpec& replication, uint64_t workers) {
  if (!replication::recodesTransfers(replication)) return 0;
  const bool have_the_same = replication.mode == cluster::ReplicationSpec::Mode::kSync &&
                             replication.replicas_to_aggregate == 0;
  return replication::isLossy(replication) && !have_the_same ? 2 * workers + 1 : 2;
}

}  // namespace

PsCopies psCopies(const cluster::JobSpec& job) {
  DTF_CHECK(job.train.has_value());
  PsCopies copies;
  copies.slots = optimizer::slotCount(job.train->optimizer);
  if (job.durability.kind == cluster::Durability::kSnapshot)
    copies.durability = kSnapshotCopies * (1 + copies.slots);
  // A replica runs the same updates.
  if (job.durability.kind == cluster::Durability::kReplica)
    copies.durability = copies.values + copies.slots;
  copies.values += copiesSent(job.train->replication, job.cluster.worker.size());
  return copies;
}

uint64_t copiesForTransfer(const cluster::ReplicationSpec& replication, uint64_t elements) {
  if (replication::isLossy(replication)) return elements;
  return replication::recodesTransfers(replication) ? elements / 2 : 0;
}

std::string sizeText(const JobSize& size) {
  constexpr size_t kListedMax = 4;
  DTF_CHECK(!size.ps_bytes.empty());
  std::string text = fmt::format("{} parameters, {}: ", size.parameters,
                                 bytesText(size.parameters * sizeof(float)));
  if (size.ps_bytes.size() > kListedMax) {
    const auto [least, most] = std::minmax_element(size.ps_bytes.begin(), size.ps_bytes.end());
    return text + fmt::format("from {} to {} on each of {} {}", bytesText(*least), bytesText(*most),
                              size.ps_bytes.size(), size.hosts.noun());
  }
  for (uint32_t ps = 0; ps < size.ps_bytes.size(); ++ps)
    text += fmt::format("{}{} on {}", ps == 0 ? "" : ", ", bytesText(size.ps_bytes[ps]),
                        size.hosts.of(ps).name());
  return text;
}

}  // namespace dtf::train
