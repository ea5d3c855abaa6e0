#pragma once

// The events that a target's corpus must reach: the replay of a whole corpus fails if one is
// missing.

#include <cstdint>
#include <map>
#include <string>

namespace dtf::fuzz {

// Event name -> how often it happened. Targets add theirs with 0 before anything runs.
inline std::map<std::string, uint64_t>& reached() {
  static std::map<std::string, uint64_t> counts;
  return counts;
}

struct MustReach {
  MustReach(std::initializer_list<const char*> names) {
    for (const char* name : names) reached()[name] = 0;
  }
};

}  // namespace dtf::fuzz
