#pragma once

// The number of random cases of a test.

namespace dtf::testing {

#if defined(__has_feature)
#define DTF_HAS_FEATURE(name) __has_feature(name)
#else
#define DTF_HAS_FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    DTF_HAS_FEATURE(address_sanitizer) || DTF_HAS_FEATURE(thread_sanitizer)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif
#undef DTF_HAS_FEATURE

// Returns `all`, or a tenth under a sanitizer, where each case costs twenty to fifty times as much.
// Sanitizers check memory and threads; the release build checks the results of all cases
// (scripts/test.sh --all).
template <class Count>
constexpr Count repetitions(Count all) {
  return kIsSanitized ? (all + 9) / 10 : all;
}

}  // namespace dtf::testing
