#pragma once

// kj walks the stack for each exception that it throws, and half of all calls here end in one.

#include <kj/exception.h>

namespace dtf::fuzz {

// While this lives, exceptions have no traces. On the stack only.
class NoTraces final : public kj::ExceptionCallback {
 public:
  StackTraceMode stackTraceMode() override { return StackTraceMode::NONE; }
};

}  // namespace dtf::fuzz
