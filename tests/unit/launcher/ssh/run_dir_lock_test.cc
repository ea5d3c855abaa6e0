#include "launcher/ssh/run_dir_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <optional>

#include "common/base/error.h"
#include "tests/support/process.h"

namespace dtf::launcher {
namespace {

namespace fs = std::filesystem;

constexpr Duration kShort = std::chrono::milliseconds(200);
constexpr Duration kLong = std::chrono::seconds(20);

TEST(RunDirLock, AgentsOfOneLaunchShareItAndAnotherLaunchIsRefused) {
  const testing::TemporaryFolder folder;
  {
    std::optional<RunDirLock> first(std::in_place, folder.path(), "a1", kShort);
    const RunDirLock second(folder.path(), "a1", kShort);
    first.reset();
    try {
      const RunDirLock other(folder.path(), "b2", kShort);
      ADD_FAILURE() << "it was let in beside another launch";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
      EXPECT_THAT(error.message(), ::testing::HasSubstr("another launch, perhaps from another"));
      EXPECT_THAT(error.message(), ::testing::HasSubstr(folder.path()));
    }
  }
  EXPECT_TRUE(fs::is_empty(folder.path()));
  const RunDirLock other(folder.path(), "b2", kShort);
}

// The second waits until the first has ended.
TEST(RunDirLock, AKilledHolderHoldsNothing) {
  const testing::TemporaryFolder folder;
  std::array<int, 2> held{};
  ASSERT_EQ(::pipe(held.data()), 0);
  const pid_t holder = ::fork();
  ASSERT_GE(holder, 0);
  if (holder == 0) {
    const RunDirLock lock(folder.path(), "a1", kShort);
    if (::write(held[1], "x", 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(held[0], &byte, 1), 1);
  EXPECT_THROW(RunDirLock(folder.path(), "b2", kShort), Error);
  ::kill(holder, SIGKILL);
  {
    const RunDirLock next(folder.path(), "b2", kLong);
    EXPECT_FALSE(fs::exists(folder.path() + "/.launch-a1"));
  }
  ::waitpid(holder, nullptr, 0);
  ::close(held[0]);
  ::close(held[1]);
}

}  // namespace
}  // namespace dtf::launcher
