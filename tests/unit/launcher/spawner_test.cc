#include "launcher/spawner.h"

#include <poll.h>

#include <csignal>

#include "common/base/error.h"
#include "tests/unit/launcher/loop_fixture.h"

namespace dtf::launcher {
namespace {

// Returns all bytes until the last writer has gone.
std::string readAll(const Fd& fd) {
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = ::read(fd.get(), buffer, sizeof(buffer))) > 0;)
    text.append(buffer, static_cast<size_t>(n));
  return text;
}
bool hasEnded(const Fd& exited) {
  pollfd state{exited.get(), POLLIN, 0};
  return ::poll(&state, 1, 60'000) == 1;
}
TaskCommand shell(const std::string& script) {
  TaskCommand command;
  command.id = {JobKind::kWorker, 0};
  command.argv = {"/bin/sh", "-c", script};
  command.folder = "/";
  return command;
}

TEST(Spawner, ATaskHasItsEnvironmentItsFolderAndNoStdin) {
  Spawner spawner;
  TaskCommand command = shell("echo $A; pwd; cat; echo err >&2; exit 7");
  command.env = {{"A", "x y"}};
  command.folder = "/tmp";
  SpawnedTask task = spawner.spawn(command, Fd());
  EXPECT_EQ(readAll(task.output), "x y\n/tmp\nerr\n");
  ASSERT_TRUE(hasEnded(task.exited));
  EXPECT_EQ(spawner.reap(task.pid), (ExitStatus{7, 0}));
}

TEST(Spawner, ItsNoticesComeOverADescriptorOfTheirOwn) {
  Spawner spawner;
  SpawnedTask task = spawner.spawn(shell("echo said >&$DTF_NOTIFY_FD"), Fd());
  EXPECT_EQ(readAll(task.notify), "said\n");
  EXPECT_EQ(readAll(task.output), "");
  ASSERT_TRUE(hasEnded(task.exited));
  EXPECT_TRUE(spawner.reap(task.pid).success());
}

TEST(Spawner, OneThatASignalEndedSaysWhich) {
  Spawner spawner;
  SpawnedTask task = spawner.spawn(shell("echo up; exec sleep 1000"), Fd());
  char byte;
  ASSERT_EQ(::read(task.output.get(), &byte, 1), 1);
  spawner.signal(task.pid, SIGTERM);
  ASSERT_TRUE(hasEnded(task.exited));
  EXPECT_EQ(spawner.reap(task.pid), (ExitStatus{0, SIGTERM}));
  spawner.signal(task.pid, SIGTERM);  // it has gone: no effect
}

// The pipes end only when the grandchild ends.
TEST(Spawner, WhatAProcessLeavesBehindEndsWithIt) {
  Spawner spawner;
  SpawnedTask task = spawner.spawn(shell("sleep 1000 & exit 0"), Fd());
  ASSERT_TRUE(hasEnded(task.exited));
  EXPECT_TRUE(spawner.reap(task.pid).success());
  EXPECT_EQ(readAll(task.output), "");
}

TEST(Spawner, AProgramHasThreePipes) {
  Spawner spawner;
  SpawnedProgram program = spawner.run({"sh", "-c", "cat; echo err >&2"});  // found in PATH
  ASSERT_EQ(::write(program.in.get(), "hello", 5), 5);
  program.in = Fd();
  EXPECT_EQ(readAll(program.out), "hello");
  EXPECT_EQ(readAll(program.err), "err\n");
  ASSERT_TRUE(hasEnded(program.exited));
  EXPECT_TRUE(spawner.reap(program.pid).success());
}

TEST(Spawner, AProgramThatCannotBeRunIsNamed) {
  Spawner spawner;
  TaskCommand command = shell("");
  for (const auto& [path, code] : {std::pair{"/no/such/psd", ErrorCode::kBadConfig},
                                   {"/etc/passwd", ErrorCode::kPermission}}) {
    command.argv = {path};
    try {
      spawner.spawn(command, Fd());
      FAIL() << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.message();
      EXPECT_NE(error.message().find(path), std::string::npos) << error.message();
    }
  }
}

}  // namespace
}  // namespace dtf::launcher
