#include "launcher/ssh/agent_bootstrap.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "launcher/spawner.h"
#include "launcher/ssh/sha256.h"
#include "tests/support/process.h"

// The script in the shells of this machine, over pipes in place of ssh.

namespace dtf::launcher {

namespace fs = std::filesystem;

using ::testing::HasSubstr;

constexpr const char* kAgent = "#!/bin/sh\necho dtf-agent here\nread line\necho \"$line\"\n";

std::string digestOf(std::string_view text) {
  Sha256 sha256;
  sha256.update(text);
  return sha256.finish();
}

class Bootstrap : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (runProcess({"sh", "-c", std::string("command -v ") + GetParam()}).exit_code != 0)
      GTEST_SKIP() << "this machine has no " << GetParam();
    ::setenv("HOME", folder_.path().c_str(), 1);
    ::unsetenv("XDG_CACHE_HOME");
  }
  void TearDown() override { ::setenv("HOME", home_.c_str(), 1); }
  static testing::ProcessResult runProcess(std::vector<std::string> argv) {
    return testing::runProcess(std::move(argv));
  }
  void start() {
    program_ = spawner_.run({GetParam()});
    partial_.clear();
    say(bootstrapScript());
  }
  void say(std::string_view bytes) {
    ASSERT_EQ(::write(program_.in.get(), bytes.data(), bytes.size()),
              static_cast<ssize_t>(bytes.size()));
  }
  // Returns the next line; empty at the end.
  std::string line() {
    while (partial_.find('\n') == std::string::npos) {
      pollfd waiting{program_.out.get(), POLLIN, 0};
      std::array<char, 256> buffer{};
      const ssize_t n = ::poll(&waiting, 1, 20'000) <= 0
                            ? 0
                            : ::read(program_.out.get(), buffer.data(), buffer.size());
      if (n <= 0) return "";
      partial_.append(buffer.data(), static_cast<size_t>(n));
    }
    const std::string line = partial_.substr(0, partial_.find('\n'));
    partial_.erase(0, line.size() + 1);
    return line;
  }
  ExitStatus end() {
    program_.in.reset();
    pollfd ended{program_.exited.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&ended, 1, 20'000), 1);
    std::array<char, 4096> buffer{};
    const ssize_t n = ::read(program_.err.get(), buffer.data(), buffer.size());
    said_.assign(buffer.data(), n > 0 ? static_cast<size_t>(n) : 0);
    return spawner_.reap(program_.pid);
  }
  std::optional<Error> error(const std::string& dir = "") {
    const ExitStatus status = end();
    return bootstrapError("gpu1", dir, status, said_);
  }

  const std::string home_ = std::getenv("HOME") == nullptr ? "/" : std::getenv("HOME");
  const testing::TemporaryFolder folder_;
  Spawner spawner_;
  SpawnedProgram program_;
  std::string partial_, said_;
};

TEST_P(Bootstrap, BringsTheAgentOnceAndBecomesIt) {
  const std::string words = bootstrapWords(digestOf(kAgent), std::string(kAgent).size(), "");
  for (const char* answer : {"send", "have"}) {
    start();
    EXPECT_EQ(wrongBootstrapLine(line(), systemHere()), "");
    say(words);
    const std::string has = line();
    EXPECT_EQ(has, answer);
    if (wantsAgent(has)) say(kAgent);
    EXPECT_EQ(line(), "dtf-agent here");
    say("it is the agent that reads this\n");
    EXPECT_EQ(line(), "it is the agent that reads this");
    EXPECT_EQ(end(), ExitStatus{}) << said_;
  }
  const fs::path copies = fs::path(folder_.path()) / ".cache/dtf/copies";
  EXPECT_EQ(fs::status(copies).permissions(), fs::perms::owner_all);
  size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(copies))
    files += entry.is_regular_file() ? 1 : 0;
  EXPECT_EQ(files, 1u) << "nothing else is left";
}

TEST_P(Bootstrap, ADamagedCopyIsSentAgain) {
  const std::string digest = digestOf(kAgent);
  const fs::path place = fs::path(folder_.path()) / "copies/agents" / digest;
  fs::create_directories(place);
  std::ofstream(place / "dtf-agent") << "damaged";
  start();
  line();
  say(bootstrapWords(digest, std::string(kAgent).size(), "copies"));
  EXPECT_EQ(line(), "send");
  say(kAgent);
  EXPECT_EQ(line(), "dtf-agent here");
  end();
}

TEST_P(Bootstrap, WhatIsNotTheAgentIsNeverRun) {
  start();
  line();
  const std::string other = "#!/bin/sh\ntouch ~/ran\n";
  say(bootstrapWords(digestOf(kAgent), other.size(), ""));
  EXPECT_EQ(line(), "send");
  say(other);
  const std::optional<Error> failed = error();
  ASSERT_TRUE(failed);
  EXPECT_THAT(failed->message(), HasSubstr("gpu1: the copied dtf-agent was damaged on the way"));
  EXPECT_FALSE(fs::exists(folder_.path() + "/ran"));
}

// The launcher's words are data: a shell does not expand or run them.
TEST_P(Bootstrap, WordsAreNotForTheShell) {
  for (const std::string& words :
       std::vector<std::string>{"$(touch ran) 5 copies\n", "; touch ran; 5 copies\n",
                                digestOf("x") + " 5;touch copies\n", "\n"}) {
    start();
    line();
    say(words);
    EXPECT_EQ(line(), "") << words;
    EXPECT_TRUE(error()) << words;
  }
  start();
  line();
  say(bootstrapWords(digestOf(kAgent), std::string(kAgent).size(), "$(touch ran)`touch ran`"));
  EXPECT_EQ(line(), "send");
  say(kAgent);
  EXPECT_EQ(line(), "dtf-agent here");
  end();
  EXPECT_FALSE(fs::exists("ran"));
  EXPECT_FALSE(fs::exists(folder_.path() + "/ran"));
  EXPECT_TRUE(fs::exists(folder_.path() + "/$(touch ran)`touch ran`/agents"));
}

TEST_P(Bootstrap, AFolderThatCantBeWrittenIsSaidSo) {
  folder_.write("file", "");
  start();
  line();
  say(bootstrapWords(digestOf(kAgent), 5, folder_.path() + "/file"));
  EXPECT_EQ(line(), "");
  const std::optional<Error> failed = error(folder_.path() + "/file");
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->code(), ErrorCode::kCannotWrite);
  EXPECT_THAT(failed->message(), HasSubstr("/file, can't be written; name another folder"));
}

// The folder stays unchanged: whoever named /tmp meant no harm to its other users.
TEST_P(Bootstrap, AFolderThatOthersMayWriteIsRefusedAndLeftAlone) {
  const fs::path folder = fs::path(folder_.path()) / "shared";
  fs::create_directory(folder);
  fs::permissions(folder, fs::perms::all);
  start();
  line();
  say(bootstrapWords(digestOf(kAgent), 5, folder.string()));
  EXPECT_EQ(line(), "");
  const std::optional<Error> failed = error(folder.string());
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->code(), ErrorCode::kPermission);
  EXPECT_THAT(failed->message(), HasSubstr("/shared may be written by others"));
  EXPECT_EQ(fs::status(folder).permissions(), fs::perms::all);
}

INSTANTIATE_TEST_SUITE_P(Shells, Bootstrap, ::testing::Values("sh", "dash", "bash"),
                         [](const auto& shell) { return std::string(shell.param); });

TEST(BootstrapLines, AnotherKindOfHostIsSaidSo) {
  EXPECT_EQ(wrongBootstrapLine("dtf-copy 1 Linux x86_64", "Linux x86_64"), "");
  EXPECT_THAT(wrongBootstrapLine("dtf-copy 1 Linux aarch64", "Linux x86_64"),
              HasSubstr("it is Linux aarch64, and the programs here are for Linux x86_64"));
  EXPECT_THAT(wrongBootstrapLine("Welcome!\x1b", "Linux x86_64"),
              HasSubstr("it prints 'Welcome!?'"));
  EXPECT_THROW(wantsAgent("Welcome"), Error);
}

TEST(BootstrapError, SaysWhatToDo) {
  struct Case {
    int exit_code;
    const char* said;
    ErrorCode code;
    const char* words;
  };
  const Case cases[] = {
      {91, "there is no sha256sum\n", ErrorCode::kBadConfig, "it lacks a program"},
      {92, "mkdir: cannot create directory '/copies': Permission denied\n", ErrorCode::kPermission,
       "this user may not write the folder for copies there, /copies"},
      {92, "head: write error: No space left on device\n", ErrorCode::kCannotWrite,
       "it printed: head: write error: No space left on device"},
      {94, "", ErrorCode::kDeadline, "within 300 s"},
      {96, "/copies is another user's\n", ErrorCode::kPermission, "is another user's"},
      {126, "sh: 1: exec: Permission denied\n", ErrorCode::kPermission, "mounted noexec"},
      {127, "dtf-agent: error while loading shared libraries: libfmt.so.9: cannot open\n",
       ErrorCode::kBadConfig, "install dtf's dependencies there"},
  };
  for (const Case& each : cases) {
    const auto error = bootstrapError("gpu1", "/copies", {each.exit_code, 0}, each.said);
    ASSERT_TRUE(error) << each.exit_code;
    EXPECT_EQ(error->code(), each.code) << each.exit_code;
    EXPECT_THAT(error->message(), HasSubstr(each.words));
  }
  EXPECT_FALSE(bootstrapError("gpu1", "", {69, 0}, "")) << "the agent's own";
  EXPECT_FALSE(bootstrapError("gpu1", "", {255, 0}, "")) << "ssh's";
}

}  // namespace dtf::launcher
