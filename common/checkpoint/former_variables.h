#pragma once

// Checkpoints whose variables carry former default names of layers (model/former_names.h).

#include <string>
#include <vector>

#include "common/checkpoint/manifest.h"

namespace dtf::checkpoint {

// Returns `saved` with its variables and slots renamed to the names of a job, `wanted`. A variable
// that `wanted` lacks gets the name there that differs only in former names of layers. If there is
// no such name, or several, it keeps its own, and manifestDifference() reports it. The files stay
// unchanged; readParts() reads them by the returned manifest.
Manifest underNames(Manifest saved, const std::vector<std::string>& wanted);

// Returns the names of a list of variables, for `wanted`.
template <class Variables>
std::vector<std::string> namesOf(const Variables& variables) {
  std::vector<std::string> names;
  for (const auto& variable : variables) names.push_back(variable.name);
  return names;
}

}  // namespace dtf::checkpoint
