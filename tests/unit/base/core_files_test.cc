#include "common/base/core_files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>

namespace dtf {
namespace {

// In a process of its own, as the limit can't be raised again.
TEST(CoreFiles, NoneIsLeftAndNobodyCanAskForOneAgain) {
  const auto limited = [] {
    leaveNoCoreFiles();
    leaveNoCoreFiles();
    rlimit now{2, 2};
    ::getrlimit(RLIMIT_CORE, &now);
    std::_Exit(now.rlim_cur <= 1 && now.rlim_max <= 1 ? 0 : 1);
  };
  EXPECT_EXIT(limited(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace dtf
