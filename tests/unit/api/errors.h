#pragma once

// What libdtf says when it refuses something.

#include "common/api/dtf/error.h"

#include <functional>
#include <string>

namespace dtf::testing {

// "78: the message" of what `call` throws; empty when it doesn't.
inline std::string refusal(const std::function<void()>& call) {
  try {
    call();
    return "";
  } catch (const Error& error) {
    return std::to_string(error.code()) + ": " + error.what();
  }
}

}  // namespace dtf::testing
