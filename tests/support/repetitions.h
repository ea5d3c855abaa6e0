#pragma once

// How often a test tries what it draws.

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

// `all`; under a sanitizer, where each costs twenty to fifty times as much, one of ten. Those are
// for memory and threads; all of them, for results, are the release build's (scripts/test.sh
// --all).
template <class Count>
constexpr Count repetitions(Count all) {
  return kIsSanitized ? (all + 9) / 10 : all;
}

}  // namespace dtf::testing
