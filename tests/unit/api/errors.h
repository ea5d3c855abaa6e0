#pragma once

// The errors that libdtf throws.

#include "common/api/dtf/error.h"

#include <functional>
#include <string>

namespace dtf::testing {

// Returns "78: the message" for the error of `call`; empty if it throws none.
inline std::string refusal(const std::function<void()>& call) {
  try {
    call();
    return "";
  } catch (const Error& error) {
    return std::to_string(error.code()) + ": " + error.what();
  }
}

}  // namespace dtf::testing
