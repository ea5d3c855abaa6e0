#include "common/cluster/spec.h"

#include "common/base/check.h"

namespace dtf::cluster {

using yaml::Mark;

std::string DurabilitySpec::str() const {
  DTF_CHECK((kind == Durability::kSnapshot) == (snapshot_every_steps > 0));
  switch (kind) {
    case Durability::kCheckpoint:
      return "checkpoint";
    case Durability::kSnapshot:
      return "snapshot: {every_steps: " + std::to_string(snapshot_every_steps) + "}";
    case Durability::kReplica:
      return "replica";
  }
  DTF_CHECK_MSG(false, std::to_string(static_cast<int>(kind)));
}

}  // namespace dtf::cluster
