#include "common/base/error.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>

#include "common/base/check.h"

namespace dtf {

TEST(Error, ExitCodesAreThoseOfTheContract) {
  EXPECT_EQ(exitCode(ErrorCode::kTrainingFailed), 1);
  EXPECT_EQ(exitCode(ErrorCode::kUsage), 2);
  EXPECT_EQ(exitCode(ErrorCode::kBadData), 65);
  EXPECT_EQ(exitCode(ErrorCode::kOutOfRange), 66);
  EXPECT_EQ(exitCode(ErrorCode::kUnavailable), 69);
  EXPECT_EQ(exitCode(ErrorCode::kInternal), 70);
  EXPECT_EQ(exitCode(ErrorCode::kCannotWrite), 73);
  EXPECT_EQ(exitCode(ErrorCode::kPermission), 77);
  EXPECT_EQ(exitCode(ErrorCode::kBadConfig), 78);
  EXPECT_EQ(exitCode(ErrorCode::kDeadline), 124);
}

TEST(Error, CarriesItsMessage) {
  const Error error(ErrorCode::kBadData, "images.gz is truncated");
  EXPECT_STREQ(error.what(), "images.gz is truncated");
  EXPECT_EQ(errorCodeName(error.code()), "bad_data");
}

TEST(Error, ErrnoTextNamesAndNumbers) {
  EXPECT_EQ(errnoText(ENOENT), "No such file or directory (2)");
}

TEST(CheckDeathTest, SaysWhatAndWhere) {
  EXPECT_DEATH(DTF_CHECK_MSG(1 + 1 == 3, "sum=2"), "error_test.cc:.*1 \\+ 1 == 3 sum=2");
}

}  // namespace dtf
