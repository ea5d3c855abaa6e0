#include "common/cluster/spec.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/text.h"

namespace dtf::cluster {

namespace {

std::string nameAt(std::string_view names, size_t index) {
  const std::vector<std::string> all = split(names, '|');
  DTF_CHECK_MSG(index < all.size(), std::string(names));
  return all[index];
}

}  // namespace

std::string Mark::str() const {
  if (line == 0) return file;
  return file + ":" + std::to_string(line) + ":" + std::to_string(column);
}

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

std::string nameOf(Activation activation) {
  return nameAt(kActivationNames, static_cast<size_t>(activation));
}

std::optional<Activation> activationOf(std::string_view name) {
  const std::vector<std::string> names = split(kActivationNames, '|');
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Activation>(found - names.begin());
}

std::string nameOf(Loss loss) {
  return nameAt(kLossNames, static_cast<size_t>(loss));
}

}  // namespace dtf::cluster
