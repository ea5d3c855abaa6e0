#include "common/base/call_log.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace dtf {

namespace {

// Returns the text that a process with that environment writes.
std::string writtenBy(const std::string& file, void (*body)()) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("DTF_CALL_LOG", file.c_str(), 1);
    body();
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST(CallLog, EachLineOncePerProcessAfterThoseOfOthers) {
  const std::string file =
      std::filesystem::temp_directory_path() / ("dtf-call-log-" + std::to_string(::getpid()));
  const auto body = [] {
    EXPECT_TRUE(callLogWanted());
    logCall("one");
    logCall("two");
    logCall("one");
  };
  EXPECT_EQ(writtenBy(file, body), "one\ntwo\n");
  EXPECT_EQ(writtenBy(file, body), "one\ntwo\none\ntwo\n");
  std::filesystem::remove(file);
}

TEST(CallLog, AFileThatCannotBeWrittenEndsTheProcess) {
  EXPECT_DEATH(
      {
        ::setenv("DTF_CALL_LOG", "/proc/no/such", 1);
        logCall("one");
      },
      "DTF_CALL_LOG names a file");
}

}  // namespace dtf
