#include "common/api/guarded.h"

#include <new>
#include <string>

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf::api {

namespace {

// An allocation that fails while the message is made must not fail the caller's process.
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

dtf_code guarded(const std::function<void()>& what) noexcept {
  DTF_CHECK(what != nullptr);
  try {
    what();
    return DTF_OK;
  } catch (const Error& error) {
    return failed(static_cast<dtf_code>(exitCode(error.code())), error.what());
  } catch (const std::bad_alloc&) {
    return failed(DTF_UNAVAILABLE, "no memory is left");
  } catch (const std::exception& error) {
    return failed(DTF_INTERNAL, error.what());
  }
}

}  // namespace dtf::api

const char* dtf_error_message(void) {
  return dtf::api::message.c_str();
}

const char* dtf_version(void) {
  return DTF_VERSION;
}
