#include "launcher/slurm/srun_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtf::launcher {

using ::testing::Contains;
using ::testing::HasSubstr;

TEST(SrunCommand, IsOneProcessOnThatNodeBesideAllOthers) {
  const std::vector<std::string> argv = srunCommand("gpu01", "/opt/dtf/dtf-agent");
  EXPECT_EQ(argv.front(), "srun");
  EXPECT_EQ(argv.back(), "/opt/dtf/dtf-agent");
  for (const char* option :
       {"--nodelist=gpu01", "--nodes=1", "--ntasks=1", "--overlap", "--unbuffered", "--mem=0"})
    EXPECT_THAT(argv, Contains(option));
}

// Errors of srun 22.05.
TEST(SrunError, SaysWhatToDo) {
  struct Case {
    int exit_code;
    const char* said;
    ErrorCode code;
    const char* words;
  };
  const Case cases[] = {
      {2, "slurmstepd-two: error: execve(): /x/dtf-agent: No such file or directory\n",
       ErrorCode::kBadConfig, "two: there is no /x/dtf-agent: install dtf there"},
      {13, "slurmstepd-two: error: execve(): /x/dtf-agent: Permission denied\n",
       ErrorCode::kPermission, "two: /x/dtf-agent can't be run there"},
      {127, "/x/dtf-agent: error while loading shared libraries: libfmt.so.9\n",
       ErrorCode::kBadConfig, "lacks a library there"},
      {1,
       "srun: error: Unable to create step for job 7: Requested node configuration is not "
       "available\n",
       ErrorCode::kUnavailable, "Slurm can't run a step on this node"},
      {5, "srun: error: something else\n", ErrorCode::kUnavailable,
       "two: its step exited with code 5\n  srun printed: srun: error: something else"},
  };
  for (const Case& each : cases) {
    ExitStatus status;
    status.code = each.exit_code;
    const Error error = srunError("two", "/x/dtf-agent", status, each.said);
    EXPECT_EQ(error.code(), each.code) << each.said;
    EXPECT_THAT(error.message(), HasSubstr(each.words));
  }
}

}  // namespace dtf::launcher
