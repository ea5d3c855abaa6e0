#pragma once

// DTF_CHECK states an invariant of our own code. It is always on: a broken invariant aborts the
// process with the place and the values, because going on would train on garbage. Data from a peer,
// a file or a user is never CHECKed; it is validated and answered with dtf::Error.

#include <string>

namespace dtf {

[[noreturn]] void checkFailed(const char* condition, const char* file, int line,
                              const std::string& values);

}  // namespace dtf

#define DTF_CHECK(condition)                                             \
  do {                                                                   \
    if (!(condition)) [[unlikely]]                                       \
      ::dtf::checkFailed(#condition, __FILE__, __LINE__, std::string()); \
  } while (false)

// Like DTF_CHECK; `values` is a std::string expression, built only on failure.
#define DTF_CHECK_MSG(condition, values)                          \
  do {                                                            \
    if (!(condition)) [[unlikely]]                                \
      ::dtf::checkFailed(#condition, __FILE__, __LINE__, values); \
  } while (false)
