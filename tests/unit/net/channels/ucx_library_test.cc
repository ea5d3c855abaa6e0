#include "common/net/channels/ucx_library.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "common/base/error.h"

namespace dtf::net {
namespace {

TEST(UcxLibrary, LeavesSignalsAndMmapAloneAndKeepsWhatAPersonHasSet) {
  ::setenv("UCX_LOG_LEVEL", "error", 1);
  try {
    const UcxLibrary& ucx = UcxLibrary::open();
    EXPECT_STREQ(ucx.status_string(UCS_OK), "Success");
    EXPECT_EQ(&UcxLibrary::open(), &ucx);
  } catch (const Error& error) {
    GTEST_SKIP() << error.message();
  }
  EXPECT_STREQ(std::getenv("UCX_HANDLE_ERRORS"), "none");
  EXPECT_STREQ(std::getenv("UCX_MEM_EVENTS"), "n");
  EXPECT_STREQ(std::getenv("UCX_LOG_LEVEL"), "error");
  ::unsetenv("UCX_LOG_LEVEL");
}

}  // namespace
}  // namespace dtf::net
