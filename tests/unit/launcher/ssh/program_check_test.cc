#include "launcher/ssh/program_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "common/base/error.h"
#include "tests/support/process.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

using ::testing::HasSubstr;

TEST(ProgramCheck, AProgramThatRunsIsGood) {
  EXPECT_NO_THROW(checkProgramRuns("/bin/true"));
}

TEST(ProgramCheck, WhatTheLoaderSaysIsTold) {
  const testing::TemporaryFolder folder;
  folder.write("psd",
               "#!/bin/sh\n"
               "echo \"psd: error while loading shared libraries: libjpeg.so.62: cannot open "
               "shared object file\" >&2\nexit 127\n");
  fs::permissions(folder.path() + "/psd", fs::perms::owner_all);
  try {
    checkProgramRuns(folder.path() + "/psd");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    EXPECT_THAT(error.message(), HasSubstr("psd, which was copied there, can't run: psd: error"));
    EXPECT_THAT(error.message(), HasSubstr("libjpeg.so.62"));
    EXPECT_THAT(error.message(), HasSubstr("install dtf's dependencies there"));
  }
}

}  // namespace dtf::launcher
