#pragma once

// Checkpoints of files with old names of layers: their variables have the default names of that
// time (model/former_names.h).

#include <string>
#include <vector>

#include "common/checkpoint/manifest.h"

namespace dtf::checkpoint {

// Returns `saved` with its variables and slots under the names in `wanted`, the variables of a job:
// each that `wanted` lacks gets the one name there that differs from its own in old names of layers
// only. A variable without such a name, or with several, keeps its own; manifestDifference() then
// reports it. The files stay as they are, so readParts() reads them by the new manifest.
Manifest underNames(Manifest saved, const std::vector<std::string>& wanted);

// The names of a list of variables, for `wanted`.
template <class Variables>
std::vector<std::string> namesOf(const Variables& variables) {
  std::vector<std::string> names;
  for (const auto& variable : variables) names.push_back(variable.name);
  return names;
}

}  // namespace dtf::checkpoint
