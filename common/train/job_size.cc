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

}  // namespace

PsCopies psCopies(const cluster::JobSpec& job) {
  DTF_CHECK(job.train.has_value());
  PsCopies copies;
  copies.slots = optimizer::slotCount(job.train->optimizer);
  if (job.durability.kind == cluster::Durability::kSnapshot)
    copies.durability = kSnapshotCopies * (1 + copies.slots);
  // Rounded copies of at most four versions in transfer, each half as large; or the parameters that
  // the workers have: of the last two steps, or of each one.
  const cluster::ReplicationSpec& replication = job.train->replication;
  if (replication::recodesTransfers(replication)) copies.values += 2;
  if (replication::isLossy(replication) &&
      replication.mode != cluster::ReplicationSpec::Mode::kSync)
    copies.values += job.cluster.worker.size();
  // A replica runs the same updates.
  if (job.durability.kind == cluster::Durability::kReplica)
    copies.durability = copies.values + copies.slots;
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
