#include "common/base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <optional>
#include <vector>

#include "common/base/error.h"
#include "common/base/thread.h"

namespace {

std::vector<std::filesystem::path> synced;  // in order, by this process

}  // namespace

// Replaces the C library's: only a power cut would show durability, but a test can check the calls.
extern "C" int fsync(int fd) {
  std::error_code error;
  synced.push_back(std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), error));
  return static_cast<int>(::syscall(SYS_fsync, fd));
}

namespace dtf {

namespace fs = std::filesystem;

class FileTest : public ::testing::Test {
 protected:
  FileTest() {
    std::string pattern = (fs::temp_directory_path() / "dtf-file-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~FileTest() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_F(FileTest, ReplaceWritesAndReadsBack) {
  atomicReplace(folder_ / "a", "first");
  atomicReplace(folder_ / "a", "second");
  EXPECT_EQ(readFile(folder_ / "a", 100), "second");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1) << "no temporary file is left";
}

TEST_F(FileTest, TemporariesOfTheKilledAreRemovedAndThoseOfTheLivingStay) {
  const pid_t killed = ::fork();
  if (killed == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(killed, nullptr, 0), killed);
  const std::string dead = std::to_string(killed);
  const std::string alive = std::to_string(::getpid());
  const auto touch = [this](const std::string& name) { std::ofstream(folder_ / name) << "x"; };
  for (const std::string& name : {"a.tmp." + dead, ".probe." + dead}) touch(name);
  const std::vector<std::string> others = {"a.tmp." + alive, "a.tmp." + dead + "x", "a.tmp.",
                                           "a.tmp.-1",       "a." + dead,           "a"};
  for (const std::string& name : others) touch(name);
  removeTemporaries(folder_);
  for (const std::string& name : others) EXPECT_TRUE(fs::exists(folder_ / name)) << name;
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), std::ssize(others));
  removeTemporaries(folder_ / "no");
}

TEST_F(FileTest, ReplaceInAMissingFolderNamesIt) {
  try {
    atomicReplace(folder_ / "no" / "a", "x");
    FAIL() << "must throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCannotWrite);
    EXPECT_NE(error.message().find("/no/a"), std::string::npos) << error.message();
  }
}

// Anybody can guess the name of the temporary file.
TEST_F(FileTest, ReplaceWritesThroughNoLink) {
  std::ofstream(folder_ / "victim") << "untouched";
  fs::create_symlink(folder_ / "victim", folder_ / ("a.tmp." + std::to_string(::getpid())));
  atomicReplace(folder_ / "a", "new");
  EXPECT_EQ(readFile(folder_ / "victim", 100), "untouched");
  EXPECT_EQ(readFile(folder_ / "a", 100), "new");
  EXPECT_FALSE(fs::is_symlink(folder_ / "a"));
  fs::create_symlink(folder_ / "victim", folder_ / (".probe." + std::to_string(::getpid())));
  makeWritableFolder(folder_);
  EXPECT_EQ(readFile(folder_ / "victim", 100), "untouched");
}

TEST_F(FileTest, WhatThisUserMayNotIsAMatterOfPermission) {
  const auto code = [](const std::function<void()>& act) -> std::optional<ErrorCode> {
    try {
      act();
    } catch (const Error& error) {
      return error.code();
    }
    return std::nullopt;
  };
  std::ofstream(folder_ / "a") << "secret";
  ::chmod((folder_ / "a").c_str(), 0);
  ::chmod(folder_.c_str(), 0500);
  const bool is_root = ::geteuid() == 0;
  if (is_root) {
    ASSERT_EQ(::seteuid(65534), 0);
  }
  const auto read = code([this] { readFile(folder_ / "a", 100); });
  const auto write = code([this] { atomicReplace(folder_ / "b", "x"); });
  const auto make = code([this] { makeWritableFolder(folder_); });
  if (is_root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  ::chmod(folder_.c_str(), 0700);
  EXPECT_EQ(read, ErrorCode::kPermission);
  EXPECT_EQ(write, ErrorCode::kPermission);
  EXPECT_EQ(make, ErrorCode::kPermission);
}

TEST_F(FileTest, ReadRefusesWhatIsMissingAFolderOrTooLarge) {
  EXPECT_THROW(readFile(folder_ / "none", 10), Error);
  EXPECT_THROW(readFile(folder_, 10), Error);
  std::ofstream(folder_ / "big") << std::string(11, 'x');
  EXPECT_THROW(readFile(folder_ / "big", 10), Error);
  EXPECT_EQ(readFile(folder_ / "big", 11).size(), 11u);
}

std::string refusalOf(const fs::path& file, uint64_t bytes_max) {
  try {
    readFile(file, bytes_max);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData);
    return error.message();
  }
  return "";
}

TEST_F(FileTest, APipeIsReadAsLongAsSomebodyWritesToIt) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(refusalOf(pipe, 100),
            "cannot read " + pipe.string() + ": is a pipe that nobody writes to");
  Fd writer(::open(pipe.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(writer.valid());
  const Fd held(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));  // keeps the bytes
  Thread late("late", [&writer] {
    writeAll(writer.get(), "first ");
    writeAll(writer.get(), "second");
    writer.reset();
  });
  EXPECT_EQ(readFile(pipe, 100), "first second");
}

TEST_F(FileTest, AFileBeyondTheLimitIsNotRead) {
  std::ofstream(folder_ / "sparse") << "x";
  fs::resize_file(folder_ / "sparse", uintmax_t{1} << 40);
  EXPECT_NE(refusalOf(folder_ / "sparse", uint64_t{1} << 31).find("larger than the limit"),
            std::string::npos);
  EXPECT_NE(refusalOf("/dev/zero", 100'000).find("larger than the limit"), std::string::npos);
}

TEST_F(FileTest, WritableFolderIsMadeWithItsParents) {
  makeWritableFolder(folder_ / "x" / "y");
  EXPECT_TRUE(fs::is_directory(folder_ / "x" / "y"));
  std::ofstream(folder_ / "file") << "";
  EXPECT_THROW(makeWritableFolder(folder_ / "file" / "z"), Error);
}

TEST_F(FileTest, TheNamesOfNewFoldersAreDurable) {
  const fs::path here = fs::current_path();
  fs::current_path(folder_);
  synced.clear();
  makeWritableFolder(fs::path("runs") / "job");
  fs::current_path(here);
  const fs::path root = fs::canonical(folder_);
  EXPECT_EQ(synced, (std::vector<fs::path>{root, root / "runs"}));
  synced.clear();
  makeWritableFolder(root / "runs" / "job");
  EXPECT_TRUE(synced.empty()) << "they were there";
}

TEST_F(FileTest, FdClosesOnceAndMoves) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  Fd moved = std::move(write_end);
  EXPECT_FALSE(write_end.valid());
  moved.reset();
  char byte;
  EXPECT_EQ(::read(read_end.get(), &byte, 1), 0) << "the write end is closed";
}

}  // namespace dtf
