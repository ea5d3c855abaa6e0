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
  EXPECT_NE(fault->message().find("seat 1 of " + file_.string() + ": end it"), std::string::npos)
      << fault->message();
  const auto other = join(0);
  std::thread leaver([&first] { first = nullptr; });
  EXPECT_NE(join(1), nullptr) << "waits until the first has left";
  leaver.join();
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
