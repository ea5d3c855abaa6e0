#pragma once

// The placement that `placement: auto` has chosen for a run, in RUN_DIR/placement.json. A run that
// is resumed keeps it.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/cluster/spec.h"

namespace dtf::launcher {

inline constexpr const char* kPlacementFile = "placement.json";  // in the run's folder

// Value type.
struct KeptPlacement {
  std::string of;                      // placementKey() of the job that it was chosen for
  std::string text;                    // for people: choiceText()
  double exchange_seconds = 0;         // predicted
  std::vector<std::string> overrides;  // `--set` of the placement
  bool operator==(const KeptPlacement&) const = default;
};

// Returns what a choice depends on: the hosts of all tasks, the model, and the settings that change
// its bytes or what it may choose. Ports and the number of steps are not in it.
std::string placementKey(const cluster::JobSpec& job);

// Returns the choice in `run_dir`; nullopt if there is none.
// Errors: kBadData for a damaged file, kPermission.
std::optional<KeptPlacement> readPlacement(const std::filesystem::path& run_dir);

// Replaces the file as a whole.
// Errors: kCannotWrite, kPermission.
void keepPlacement(const std::filesystem::path& run_dir, const KeptPlacement& kept);

}  // namespace dtf::launcher
