#pragma once

#include <string>

#include "common/base/error.h"

namespace dtf::graph::testing {

// Returns the message of the dtf::Error that `action` throws; empty if it throws none.
template <class Action>
std::string errorText(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.message();
  }
  return {};
}

}  // namespace dtf::graph::testing
