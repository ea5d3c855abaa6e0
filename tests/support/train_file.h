#pragma once

// Reads a TRAIN.yaml like workerd --train.

#include <filesystem>
#include <string>
#include <vector>

#include "common/cluster/cluster_yaml.h"

namespace dtf::testing {

// For two workers and a ps. The overrides start at the top of the file: "steps=50".
// Errors: as cluster::jobFromHosts().
inline cluster::TrainSpec readTrainFile(const std::filesystem::path& file,
                                        std::vector<std::string> overrides = {}) {
  for (std::string& change : overrides) change.insert(0, "train.");
  return cluster::jobFromHosts("localhost:2221", "localhost:2223,localhost:2224", file, overrides)
      .train.value();
}

}  // namespace dtf::testing
