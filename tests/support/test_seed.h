#pragma once

// Tests that make random choices can be run again as they were.

#include <cstdint>
#include <cstdlib>

namespace dtf::testing {

// DTF_TEST_SEED, or a fixed one. To be printed by SCOPED_TRACE.
inline uint64_t testSeed() {
  const char* text = std::getenv("DTF_TEST_SEED");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

}  // namespace dtf::testing
