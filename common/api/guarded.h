#pragma once

// The boundary between C++ and the callers of libdtf: no exception crosses it.

#include <cstddef>
#include <cstring>
#include <exception>
#include <string>

#include "common/api/dtf/dtf.h"

namespace dtf::api {

// Returns the code of `error`, and stores its sentence for dtf_error_message(). Threads:
// thread-safe; each thread has its own message.
dtf_code fail(const std::exception_ptr& error) noexcept;

[[noreturn]] void refuseSize(const char* name, size_t given, size_t known);

// stderr belongs to the program: from now on dtf only writes warnings and errors to it.
void quietLog();

// Returns options of any size: the program may be compiled for another version. `name` is for
// messages. Errors: kUsage for a size that no version has.
template <class Options>
Options optionsOf(const Options* given, const char* name) {
  Options options{};
  if (given == nullptr) return options;
  if (given->size < sizeof(given->size) || given->size > sizeof(options))
    refuseSize(name, given->size, sizeof(options));
  std::memcpy(&options, given, given->size);
  return options;
}

// Copies `text` to `to`, cut to `room` bytes with its 0; `bytes` receives its whole size. Both may
// be null.
void giveText(const std::string& text, char* to, size_t room, size_t* bytes);

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
