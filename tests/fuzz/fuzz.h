#pragma once

// The shared parts of all fuzz targets. A target is one file fuzz_<name>.cc with a
// LLVMFuzzerTestOneInput: under the meson option `fuzz` (scripts/fuzz.sh) it is linked with
// libFuzzer; in the ordinary build it is linked with replay_main.cc and runs its corpus as a test.
//
// A target feeds the bytes to one reader of untrusted input. Any dtf::Error is a right answer; a
// crash, a leak, a sanitizer's report, any other exception, or a broken FUZZ_CHECK is not.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "common/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace dtf::fuzz {

inline std::string_view textOf(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Keeps the reads that compute `value` from being optimised away.
template <class T>
void use(T value) {
  static volatile T sink{};
  sink = value;
  static_cast<void>(sink);
}

}  // namespace dtf::fuzz

// A property that must hold for every accepted input.
#define FUZZ_CHECK(condition)                                                             \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      std::fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                       \
    }                                                                                     \
  } while (false)

namespace dtf::fuzz {

// Whether `read` accepts its input; any other input must be an error of bad data.
template <class Read>
bool accepts(const Read& read) {
  try {
    read();
    return true;
  } catch (const Error& error) {
    FUZZ_CHECK(error.code() == ErrorCode::kBadData);
    return false;
  }
}

}  // namespace dtf::fuzz
