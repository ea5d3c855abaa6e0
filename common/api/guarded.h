#pragma once

// Between C++ and the callers of libdtf: no exception leaves it.

#include <exception>

#include "common/api/dtf/dtf.h"

namespace dtf::api {

// The code of `error`, whose sentence becomes that of dtf_error_message(). Threads: thread-safe;
// each thread has a message of its own.
dtf_code fail(const std::exception_ptr& error) noexcept;

// Runs `what`. An exception becomes its code.
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
