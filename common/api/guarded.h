#pragma once

// Between C++ and the callers of libdtf: no exception leaves it.

#include <functional>

#include "common/api/dtf/dtf.h"

namespace dtf::api {

// Runs `what`. An exception becomes its code, and its sentence that of dtf_error_message().
// Threads: thread-safe; each thread has a message of its own.
dtf_code guarded(const std::function<void()>& what) noexcept;

}  // namespace dtf::api
