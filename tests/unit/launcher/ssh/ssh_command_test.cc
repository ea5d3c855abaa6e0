#include "launcher/ssh/ssh_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace dtf::launcher {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(SshCommand, HasOneHarmlessWordBehindTheHost) {
  const std::vector<std::string> plain = sshCommand("gpu1", {}, 1, 10);
  EXPECT_EQ(plain[0], "ssh");
  const std::vector<std::string> end(plain.end() - 3, plain.end());
  EXPECT_EQ(end, (std::vector<std::string>{"--", "gpu1", "dtf-agent"}));
  for (const char* option : {"BatchMode=yes", "ServerAliveInterval=1", "ServerAliveCountMax=13",
                             "ControlMaster=no", "ForwardAgent=no"})
    EXPECT_THAT(plain, Contains(option));
  for (const std::string& word : plain) EXPECT_THAT(word, Not(HasSubstr("StrictHostKeyChecking")));

  const cluster::SshSpec ssh{"me", 2222, "/keys/id", "/c/ssh_config", "/opt/dtf/bin"};
  const std::vector<std::string> full = sshCommand("10.0.0.5", ssh, 1, 10);
  EXPECT_EQ(full.back(), "/opt/dtf/bin/dtf-agent");
  const auto behind = [&full](const std::string& option) {
    return *(std::find(full.begin(), full.end(), option) + 1);
  };
  EXPECT_EQ(behind("-l"), "me");
  EXPECT_EQ(behind("-p"), "2222");
  EXPECT_EQ(behind("-i"), "/keys/id");
  EXPECT_EQ(behind("-F"), "/c/ssh_config");
}

TEST(SshCommand, AHostThatIsBroughtTheAgentRunsAShell) {
  const std::vector<std::string> command = sshCommand("gpu1", {}, 1, 10, true);
  const std::vector<std::string> end(command.end() - 3, command.end());
  EXPECT_EQ(end, (std::vector<std::string>{"--", "gpu1", "sh"}));
}

struct Case {
  int exit_code;
  const char* said;
  ErrorCode code;
  const char* words;
};

// Errors of OpenSSH 9.2.
TEST(SshError, SaysWhatToDo) {
  const Case cases[] = {
      {255, "ssh: connect to host gpu1 port 22: Connection refused\r\n", ErrorCode::kUnavailable,
       "gpu1: nothing listens at its ssh port"},
      {255, "ssh: connect to host gpu1 port 22: Connection timed out\r\n", ErrorCode::kUnavailable,
       "gpu1: it can't be reached; try it by hand: ssh gpu1 true"},
      {255, "ssh: connect to host gpu1 port 22: No route to host\r\n", ErrorCode::kUnavailable,
       "it can't be reached"},
      {255, "ssh: Could not resolve hostname gpu1: Name or service not known\r\n",
       ErrorCode::kBadConfig, "there is no host of that name"},
      {255, "me@gpu1: Permission denied (publickey).\r\n", ErrorCode::kPermission,
       "it does not let this user in without a password"},
      {255, "Host key verification failed.\r\n", ErrorCode::kPermission,
       "its host key is not known here"},
      {255,
       "@@@@@@@@@@@\r\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\r\n"
       "Host key for gpu1 has changed.\r\nHost key verification failed.\r\n",
       ErrorCode::kPermission, "ssh-keygen -R gpu1\n  ssh printed: Host key verification failed."},
      {127, "bash: line 1: dtf-agent: command not found\n", ErrorCode::kBadConfig,
       "there is no dtf-agent in the PATH of its ssh sessions"},
      {127,
       "dtf-agent: error while loading shared libraries: libfmt.so.9: cannot open shared object "
       "file: No such file or directory\n",
       ErrorCode::kBadConfig, "lacks a library: install dtf's dependencies there"},
      {126, "bash: line 1: /opt/dtf-agent: Permission denied\n", ErrorCode::kPermission,
       "can't be run"},
      {255, "something new\n", ErrorCode::kUnavailable, "ssh printed: something new"},
      {139, "", ErrorCode::kUnavailable, "gpu1: its dtf-agent exited with code 139"},
  };
  for (const Case& each : cases) {
    const Error error = sshError("gpu1", {}, {each.exit_code, 0}, each.said);
    EXPECT_EQ(error.code(), each.code) << each.said;
    EXPECT_THAT(error.message(), HasSubstr(each.words));
  }
  EXPECT_THAT(sshError("gpu1", {}, {0, 9}, "").message(), HasSubstr("ssh was killed by SIGKILL"));
}

}  // namespace
}  // namespace dtf::launcher
