#include "common/api/guarded.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <string>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/log.h"

namespace dtf::api {

namespace {

// A failed allocation for the message must not end the caller's process.
thread_local std::string message;

dtf_code failed(dtf_code code, const char* why) noexcept {
  try {
    message = why;
  } catch (const std::bad_alloc&) {
    message.clear();
  }
  return code;
}

}  // namespace

dtf_code fail(const std::exception_ptr& error) noexcept {
  DTF_CHECK(error != nullptr);
  try {
    std::rethrow_exception(error);
  } catch (const Error& known) {
    return failed(static_cast<dtf_code>(exitCode(known.code())), known.what());
  } catch (const std::bad_alloc&) {
    return failed(DTF_UNAVAILABLE, "no memory is left");
  } catch (const std::exception& other) {
    return failed(DTF_INTERNAL, other.what());
  } catch (...) {
    return failed(DTF_INTERNAL, "an exception of an unknown kind");
  }
}

void quietLog() {
  static std::once_flag once;
  std::call_once(once, [] { log::init("", log::Level::kWarning); });
}

void giveText(const std::string& text, char* to, size_t room, size_t* bytes) {
  if (bytes != nullptr) *bytes = text.size() + 1;
  if (to == nullptr || room == 0) return;
  const size_t length = std::min(room - 1, text.size());
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

void refuseSize(const char* name, size_t given, size_t known) {
  DTF_CHECK(name != nullptr && given != known);
  throw Error(ErrorCode::kUsage, std::string(name) + ".size is " + std::to_string(given) +
                                     ", not " + std::to_string(known) +
                                     " or less: set it, or build with the headers of this libdtf");
}

}  // namespace dtf::api

const char* dtf_error_message(void) {
  return dtf::api::message.c_str();
}

const char* dtf_version(void) {
  return DTF_VERSION;
}
