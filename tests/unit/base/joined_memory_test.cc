#include "common/base/joined_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "common/base/error.h"
#include "common/base/file.h"

namespace dtf {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;

class JoinedMemoryTest : public ::testing::Test {
 protected:
  JoinedMemoryTest()
      : folder_("/dev/shm/dtf-joined-test-" + std::to_string(::getpid())), file_(folder_ / "sum") {}
  ~JoinedMemoryTest() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  std::unique_ptr<JoinedMemory> join(uint32_t seat, size_t bytes = 10'000,
                                     Duration patience = seconds(20)) const {
    return std::make_unique<JoinedMemory>(JoinedMemory::Options{
        .file = file_, .bytes = bytes, .seats = 3, .seat = seat, .patience = patience});
  }
  // Returns the error of joining; nullopt: none.
  std::optional<Error> faultOf(uint32_t seat, size_t bytes = 10'000) const {
    try {
      join(seat, bytes, milliseconds(30));
      return std::nullopt;
    } catch (const Error& error) {
      return error;
    }
  }

  const fs::path folder_, file_;
};

TEST_F(JoinedMemoryTest, AllSeeTheSameBytesAndWhoIsThere) {
  const auto first = join(0);
  EXPECT_TRUE(std::all_of(first->data(), first->data() + 10'000,
                          [](std::byte each) { return each == std::byte{0}; }));
  const auto second = join(2);
  first->data()[9'999] = std::byte{7};
  EXPECT_EQ(second->data()[9'999], std::byte{7});
  EXPECT_TRUE(first->isTaken(0));
  EXPECT_FALSE(first->isTaken(1));
  EXPECT_TRUE(first->isTaken(2));
  EXPECT_TRUE(second->isTaken(0));
}

TEST_F(JoinedMemoryTest, ItIsGoneWithTheLast) {
  auto first = join(0);
  auto second = join(1);
  first->data()[0] = std::byte{1};
  first = nullptr;
  EXPECT_TRUE(fs::exists(file_));
  EXPECT_FALSE(second->isTaken(0));
  first = join(0);
  EXPECT_EQ(first->data()[0], std::byte{1}) << "another was there meanwhile";
  first = nullptr;
  second = nullptr;
  EXPECT_FALSE(fs::exists(folder_));
}

// Killed processes leave the file, but no seat.
TEST_F(JoinedMemoryTest, AKilledProcessLeavesItsSeatAndWhatNobodyUsesIsZeroedAgain) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto memory = join(1);
    memory->data()[5] = std::byte{9};
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(fs::exists(file_));
  const auto memory = join(0);
  EXPECT_FALSE(memory->isTaken(1));
  EXPECT_EQ(memory->data()[5], std::byte{0});
}

TEST_F(JoinedMemoryTest, ASeatIsForOneProcess) {
  auto first = join(1);
  const std::optional<Error> fault = faultOf(1);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->code(), ErrorCode::kDeadline);
  EXPECT_EQ(fault->message(),
            "waited 0 s for the earlier process with seat 1 of " + file_.string() + ": end it");
  const auto other = join(0);
  std::thread leaver([&first] { first = nullptr; });
  EXPECT_NE(join(1), nullptr) << "waits until the first has left";
  leaver.join();
}

TEST_F(JoinedMemoryTest, AProcessThatWaitsForItsSeatKeepsOutNobodyElse) {
  auto first = join(1);
  std::unique_ptr<JoinedMemory> other;
  const JoinedMemory second({.file = file_,
                             .bytes = 10'000,
                             .seats = 3,
                             .seat = 1,
                             .patience = seconds(20),
                             .on_waiting = [&](const std::string& reason, Duration) {
                               EXPECT_NE(reason.find("seat 1"), std::string::npos) << reason;
                               other = join(0, 10'000, milliseconds(1));
                               first = nullptr;
                             }});
  EXPECT_TRUE(other->isTaken(1));
}

TEST_F(JoinedMemoryTest, AFileThatStaysLockedIsReportedAsSuch) {
  const auto first = join(0);
  const Fd file(::open(file_.c_str(), O_RDWR | O_CLOEXEC));
  struct flock door {};
  door.l_type = F_WRLCK;
  door.l_whence = SEEK_SET;
  door.l_start = off_t{1} << 40;
  door.l_len = 1;
  ASSERT_EQ(::fcntl(file.get(), F_OFD_SETLK, &door), 0);
  const std::optional<Error> fault = faultOf(1);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->code(), ErrorCode::kDeadline);
  EXPECT_EQ(fault->message(),
            "waited 0 s for the process that keeps " + file_.string() + " locked: end it");
  door.l_type = F_UNLCK;
  ASSERT_EQ(::fcntl(file.get(), F_OFD_SETLK, &door), 0);
}

TEST_F(JoinedMemoryTest, TheCallbackEndsTheWait) {
  const auto first = join(1);
  EXPECT_THROW(JoinedMemory({.file = file_,
                             .bytes = 10'000,
                             .seats = 3,
                             .seat = 1,
                             .patience = seconds(1000),
                             .on_waiting =
                                 [](const std::string&, Duration) {
                                   throw Error(ErrorCode::kUnavailable, "the job has ended");
                                 }}),
               Error);
}

TEST_F(JoinedMemoryTest, OfTwoThatLeaveTogetherTheLastRemovesTheFile) {
  for (int i = 0; i < 100; ++i) {
    auto first = join(0);
    auto second = join(1);
    std::thread leaver([&first] { first = nullptr; });
    second = nullptr;
    leaver.join();
    ASSERT_FALSE(fs::exists(file_)) << i;
  }
}

TEST_F(JoinedMemoryTest, TheFileOfLaterProcessesStaysWhereTheEarlierOneWasRemoved) {
  auto earlier = join(0);
  fs::remove(file_);
  const auto later = join(0);
  earlier = nullptr;
  EXPECT_TRUE(fs::exists(file_));
}

TEST_F(JoinedMemoryTest, ProcessesOfAnotherJobDoNotMeet) {
  const auto join_as = [this](uint64_t identity, Duration patience) {
    return std::make_unique<JoinedMemory>(
        JoinedMemory::Options{.file = file_,
                              .bytes = 10'000,
                              .seats = 3,
                              .seat = static_cast<uint32_t>(identity % 3),
                              .patience = patience,
                              .identity = identity});
  };
  auto first = join_as(7, seconds(20));
  try {
    join_as(8, milliseconds(20));
    FAIL() << "it has joined";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    EXPECT_NE(error.message().find("of another job"), std::string::npos) << error.message();
  }
  EXPECT_FALSE(first->isTaken(2)) << "the refused one keeps no seat";
  first->data()[0] = std::byte{1};
  std::thread leaver([&first] { first = nullptr; });
  const auto second = join_as(8, seconds(20));
  leaver.join();
  EXPECT_EQ(second->data()[0], std::byte{0});
}

TEST_F(JoinedMemoryTest, AnotherSizeIsRefused) {
  const auto first = join(0);
  const std::optional<Error> fault = faultOf(1, 20'000);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->code(), ErrorCode::kBadConfig);
  EXPECT_EQ(faultOf(1), std::nullopt) << "the refused one is no longer there";
}

TEST_F(JoinedMemoryTest, MemoryThatOthersCouldWriteIsRefused) {
  fs::create_directory(folder_);
  ASSERT_EQ(::chmod(folder_.c_str(), 0755), 0);
  ASSERT_TRUE(faultOf(0).has_value());
  EXPECT_EQ(faultOf(0)->code(), ErrorCode::kPermission);
  ASSERT_EQ(::chmod(folder_.c_str(), 0700), 0);
  EXPECT_EQ(faultOf(0), std::nullopt);
  fs::create_directory(folder_);
  ASSERT_EQ(::chmod(folder_.c_str(), 0700), 0);
  fs::create_symlink("/dev/shm/elsewhere", file_);
  ASSERT_TRUE(faultOf(0).has_value());
}

TEST_F(JoinedMemoryTest, ARingWakesAndNoneIsMissed) {
  const auto first = join(0);
  const auto second = join(1);
  const uint32_t before = second->rings();
  first->ring();
  EXPECT_NE(second->rings(), before);
  second->awaitRing(before, seconds(100));  // returns at once
  std::atomic<bool> rung = false;
  std::thread waiter([&] {
    while (!rung) {
      const uint32_t seen = second->rings();
      if (!rung) second->awaitRing(seen, seconds(100));
    }
  });
  rung = true;
  first->ring();
  waiter.join();
  second->awaitRing(second->rings(), milliseconds(1));  // returns without a ring
}

}  // namespace
}  // namespace dtf
