#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

#include "common/base/error.h"

namespace dtf::runtime {

// Sets a variable of the environment for a test.
class ScopedEnv {
 public:
  ScopedEnv(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~ScopedEnv() { ::unsetenv(name_); }

 private:
  const char* const name_;
};

template <class F>
Error errorOf(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return {ErrorCode::kInternal, ""};
}

}  // namespace dtf::runtime
