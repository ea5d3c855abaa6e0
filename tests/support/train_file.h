#pragma once

// A TRAIN.yaml as workerd --train reads it.

#include <filesystem>
#include <string>
#include <vector>

#include "common/cluster/cluster_yaml.h"

namespace dtf::testing {

// For two workers and a ps. The overrides start at the top of the file: "steps=50".
// Errors: those of cluster::jobFromHosts().
inline cluster::TrainSpec readTrainFile(const std::filesystem::path& file,
                                        std::vector<std::string> overrides = {}) {
  for (std::string& change : overrides) change.insert(0, "train.");
  return cluster::jobFromHosts("localhost:2221", "localhost:2223,localhost:2224", file, overrides)
      .train.value();
}

}  // namespace dtf::testing
