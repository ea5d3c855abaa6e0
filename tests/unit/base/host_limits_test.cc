#include "common/base/host_limits.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <new>
#include <stdexcept>
#include <system_error>

#include "common/base/thread.h"
#include "tests/support/sanitizer.h"

namespace dtf {
namespace {

std::string messageOf(const std::exception& exception, ErrorCode code) {
  const std::optional<Error> error = hostError(exception);
  if (!error) return "no error";
  EXPECT_EQ(error->code(), code) << error->message();
  return error->message();
}

std::system_error systemError(std::errc code) {
  return std::system_error(std::make_error_code(code), "doing it");
}

TEST(HostLimits, AnExceptionForAShortageNamesItsLimit) {
  EXPECT_NE(messageOf(std::bad_alloc(), ErrorCode::kUnavailable).find("memory ran out: "),
            std::string::npos);
  EXPECT_NE(messageOf(systemError(std::errc::too_many_files_open), ErrorCode::kUnavailable)
                .find("(ulimit -n)"),
            std::string::npos);
  EXPECT_NE(
      messageOf(systemError(std::errc::resource_unavailable_try_again), ErrorCode::kUnavailable)
          .find("kernel.threads-max"),
      std::string::npos);
}

TEST(HostLimits, AnExceptionForAShortageNamesItsOperation) {
  for (const std::errc code : {std::errc::too_many_files_open, std::errc::not_enough_memory,
                               std::errc::resource_unavailable_try_again}) {
    const std::string errno_text = std::make_error_code(code).message();
    EXPECT_EQ(messageOf(systemError(code), ErrorCode::kUnavailable).find("doing it: " + errno_text),
              0u);
    EXPECT_EQ(messageOf(std::system_error(std::make_error_code(code)), ErrorCode::kUnavailable)
                  .find(errno_text),
              0u);
  }
}

TEST(HostLimits, APathThatCannotBeLookedUpIsNamed) {
  namespace fs = std::filesystem;
  const auto at = [](std::errc code) {
    return fs::filesystem_error("status", "a/b", std::make_error_code(code));
  };
  EXPECT_EQ(messageOf(at(std::errc::too_many_symbolic_link_levels), ErrorCode::kBadData),
            "cannot look up a/b: Too many levels of symbolic links (40)");
  EXPECT_EQ(messageOf(at(std::errc::permission_denied), ErrorCode::kPermission),
            "cannot look up a/b: Permission denied (13)");
}

TEST(HostLimits, AnotherExceptionIsNoShortage) {
  EXPECT_FALSE(hostError(std::logic_error("x")).has_value());
  EXPECT_FALSE(hostError(systemError(std::errc::invalid_argument)).has_value());
  EXPECT_FALSE(filesRanOut());
}

// Each limit is set in a process of its own.
TEST(HostLimitsDeathTest, TheValueOfTheLimitIsNamed) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto limited = [](__rlimit_resource resource, rlim_t value, const auto& act) {
    const rlimit limit{value, value};
    if (::setrlimit(resource, &limit) != 0) std::_Exit(2);
    act();
    std::_Exit(0);
  };
  EXPECT_EXIT(
      limited(
          RLIMIT_NOFILE, 3,
          [] { std::fprintf(stderr, "%d %s\n", int{filesRanOut()}, openFilesLimit().c_str()); }),
      ::testing::ExitedWithCode(0), "1 this process may have 3 files");
#ifndef DTF_SANITIZER_MALLOC  // a sanitizer reserves address space as it likes
  EXPECT_EXIT(limited(RLIMIT_AS, rlim_t{1} << 30,
                      [] { std::fprintf(stderr, "%s\n", memoryLimit().c_str()); }),
              ::testing::ExitedWithCode(0), "1.0 GiB of address space");
#endif
}

#ifndef DTF_SANITIZER_MALLOC
TEST(HostLimitsDeathTest, AThreadThatTheHostDoesNotGiveIsNamedWithItsLimits) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto start = [] {
    const rlimit space{1 << 28, 1 << 28};  // less than the stacks
    if (::setrlimit(RLIMIT_AS, &space) != 0) std::_Exit(2);
    std::vector<Thread> threads(1000);
    try {
      for (Thread& thread : threads) thread = Thread("crowd", [] { ::pause(); });
    } catch (const Error& error) {
      std::fprintf(stderr, "%s\n", error.message().c_str());
      std::_Exit(exitCode(error.code()));
    }
  };
  EXPECT_EXIT(start(), ::testing::ExitedWithCode(69),
              "cannot start the thread 'crowd': .*256.0 MiB of address space");
}

TEST(HostLimitsDeathTest, AThreadWithoutMemoryEndsItsProcessInWords) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto run = [] { Thread("hungry", [] { throw std::bad_alloc(); }).join(); };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(69), "memory ran out: ");
}

// For example in a destructor, or in a thread of a library.
TEST(HostLimitsDeathTest, MemoryThatRunsOutWhereNothingCatchesEndsTheProcessByName) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto run = [] {
    nameUncaughtShortages();
    const std::function<void()> ask = [] { throw std::bad_alloc(); };
    const auto uncaught = [&ask]() noexcept { ask(); };
    uncaught();
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(69), "event=failed .*memory ran out: ");
}

TEST(HostLimitsDeathTest, AnyOtherExceptionThatNothingCatchesAborts) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto run = [] {
    nameUncaughtShortages();
    const std::function<void()> fail = [] { throw std::logic_error("a bug"); };
    const auto uncaught = [&fail]() noexcept { fail(); };
    uncaught();
  };
  EXPECT_EXIT(run(), ::testing::KilledBySignal(SIGABRT), "a bug");
}
#endif

}  // namespace
}  // namespace dtf
