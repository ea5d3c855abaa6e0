#pragma once

// The boundary between C++ and the callers of libdtf: no exception crosses it.

#include <exception>

#include "common/api/dtf/dtf.h"

namespace dtf::api {

// Returns the code of `error`, and stores its sentence for dtf_error_message(). Threads:
// thread-safe; each thread has its own message.
dtf_code fail(const std::exception_ptr& error) noexcept;

// Runs `what`, and converts an exception to its code.
template <class Call>
dtf_code guarded(const Call& what) noexcept {
  try {
    what();
    return DTF_OK;
  } catch (...) {
    return fail(std::current_exception());
  }
}

}  // namespace dtf::api
