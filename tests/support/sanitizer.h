#pragma once

// DTF_SANITIZER_MALLOC is defined if a sanitizer replaces malloc(): gcc and clang have different
// macros for it.

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DTF_SANITIZER_MALLOC 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define DTF_SANITIZER_MALLOC 1
#endif
#endif
