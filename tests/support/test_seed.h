#pragma once

// A seed with which tests of random choices can be repeated.

#include <cstdint>
#include <cstdlib>

namespace dtf::testing {

// Returns DTF_TEST_SEED, or a fixed seed. Print it with SCOPED_TRACE.
inline uint64_t testSeed() {
  const char* text = std::getenv("DTF_TEST_SEED");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

}  // namespace dtf::testing
