// The contract of FileSystem, for the kernel's and for the simulated disk: tests on the simulated
// one must hold for the other.

#include "common/base/file_system.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <functional>

#include "common/base/error.h"
#include "tests/support/simulated_disk.h"

namespace dtf {

namespace fs = std::filesystem;
using testing::SimulatedDisk;
using Op = SimulatedDisk::Op;

namespace {

ErrorCode codeOf(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::kInternal;
}

void writeFile(FileSystem& disk, const fs::path& path, const std::string& text, bool sync = true) {
  const auto file = disk.create(path);
  file->write(text.data(), text.size());
  if (sync) file->sync();
  file->close();
}

}  // namespace

class FileSystemTest : public ::testing::TestWithParam<bool> {
 protected:
  FileSystemTest() {
    if (GetParam()) {
      std::string pattern = (fs::temp_directory_path() / "dtf-disk-XXXXXX").string();
      folder_ = ::mkdtemp(pattern.data());
    } else {
      simulated_.makeFolder(folder_);
    }
  }
  ~FileSystemTest() override {
    if (GetParam()) fs::remove_all(folder_);
  }
  SimulatedDisk simulated_;
  FileSystem& disk_ = GetParam() ? realFileSystem() : static_cast<FileSystem&>(simulated_);
  fs::path folder_ = "/run";
};

INSTANTIATE_TEST_SUITE_P(RealAndSimulated, FileSystemTest, ::testing::Bool(),
                         [](const auto& which) { return which.param ? "real" : "simulated"; });

TEST_P(FileSystemTest, WritesInPiecesAndReadsRanges) {
  const auto file = disk_.create(folder_ / "a");
  file->write("abc", 3);
  file->write("defg", 4);
  file->sync();
  file->close();
  EXPECT_EQ(readWhole(disk_, folder_ / "a", 7), "abcdefg");
  EXPECT_EQ(codeOf([&] { readWhole(disk_, folder_ / "a", 6); }), ErrorCode::kBadData);
  const auto opened = disk_.open(folder_ / "a");
  EXPECT_EQ(opened->size(), 7u);
  char two[2];
  opened->read(5, two, 2);
  EXPECT_EQ(std::string(two, 2), "fg");
  EXPECT_EQ(codeOf([&] { opened->read(6, two, 2); }), ErrorCode::kBadData) << "past the end";
}

TEST_P(FileSystemTest, RefusesWhatIsThereAlreadyOrIsNot) {
  writeFile(disk_, folder_ / "a", "x");
  EXPECT_EQ(codeOf([&] { disk_.create(folder_ / "a"); }), ErrorCode::kCannotWrite);
  EXPECT_EQ(codeOf([&] { disk_.create(folder_ / "no" / "a"); }), ErrorCode::kCannotWrite);
  disk_.makeFolder(folder_ / "f");
  EXPECT_EQ(codeOf([&] { disk_.makeFolder(folder_ / "f"); }), ErrorCode::kCannotWrite);
  EXPECT_EQ(codeOf([&] { disk_.open(folder_ / "none"); }), ErrorCode::kBadData);
  EXPECT_EQ(codeOf([&] { disk_.open(folder_ / "f"); }), ErrorCode::kBadData) << "a folder";
  EXPECT_EQ(codeOf([&] { disk_.list(folder_ / "none"); }), ErrorCode::kBadData);
  EXPECT_EQ(codeOf([&] { disk_.removeFile(folder_ / "none"); }), ErrorCode::kCannotWrite);
  EXPECT_EQ(codeOf([&] { disk_.removeFolder(folder_ / "none"); }), ErrorCode::kCannotWrite);
  EXPECT_EQ(codeOf([&] { disk_.syncFolder(folder_ / "none"); }), ErrorCode::kCannotWrite);
  EXPECT_TRUE(disk_.exists(folder_ / "f"));
  EXPECT_FALSE(disk_.exists(folder_ / "none"));
}

TEST_P(FileSystemTest, RenamesListsAndRemovesFolders) {
  disk_.makeFolder(folder_ / "b.tmp");
  disk_.makeFolder(folder_ / "full");
  writeFile(disk_, folder_ / "b.tmp" / "x", "1");
  writeFile(disk_, folder_ / "full" / "y", "2");
  EXPECT_EQ(codeOf([&] { disk_.rename(folder_ / "b.tmp", folder_ / "full"); }),
            ErrorCode::kCannotWrite)
      << "a folder that is not empty is never replaced";
  disk_.rename(folder_ / "b.tmp", folder_ / "b");
  writeFile(disk_, folder_ / "a", "");
  disk_.syncFolder(folder_);
  const auto entries = disk_.list(folder_);
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].name, "a");
  EXPECT_FALSE(entries[0].is_folder);
  EXPECT_EQ(entries[1].name, "b");
  EXPECT_TRUE(entries[1].is_folder);
  EXPECT_EQ(readWhole(disk_, folder_ / "b" / "x", 1), "1");
  EXPECT_EQ(codeOf([&] { disk_.removeFolder(folder_ / "b"); }), ErrorCode::kCannotWrite);
  removeTree(disk_, folder_ / "b");
  EXPECT_FALSE(disk_.exists(folder_ / "b"));
}

TEST(RealFileSystem, FilesAreTheOwnersAloneAndLinksAreNotFollowed) {
  std::string pattern = (fs::temp_directory_path() / "dtf-disk-XXXXXX").string();
  const fs::path folder = ::mkdtemp(pattern.data());
  FileSystem& disk = realFileSystem();
  disk.makeFolder(folder / "f");
  writeFile(disk, folder / "f" / "a", "secret");
  struct stat info {};
  ASSERT_EQ(::stat((folder / "f" / "a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  ASSERT_EQ(::stat((folder / "f").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  fs::create_symlink(folder / "f" / "a", folder / "link");
  fs::create_directory_symlink(folder / "f", folder / "step-1");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(codeOf([&] { disk.open(folder / "link"); }), ErrorCode::kBadData);
  EXPECT_EQ(codeOf([&] { disk.open(folder / "pipe"); }), ErrorCode::kBadData);
  EXPECT_EQ(codeOf([&] { disk.create(folder / "link"); }), ErrorCode::kCannotWrite);
  for (const FolderEntry& entry : disk.list(folder))
    EXPECT_EQ(entry.is_folder, entry.name == "f") << entry.name;
  fs::remove_all(folder);
}

// The classic mistakes with durability lose data on the simulated disk.

TEST(SimulatedDisk, RenameWithoutFsyncCanLeaveAnEmptyOrTornFile) {
  const std::string text(1000, 'x');
  int whole = 0;
  int torn = 0;
  int absent = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SimulatedDisk disk;
    writeFile(disk, "/a.tmp", text, /*sync=*/false);
    disk.rename("/a.tmp", "/a");
    disk.powerCut(seed);
    if (!disk.exists("/a"))
      ++absent;
    else
      ++(disk.contents("/a") == text ? whole : torn);
  }
  EXPECT_GT(whole, 0);
  EXPECT_GT(torn, 20);
  EXPECT_GT(absent, 20);
}

TEST(SimulatedDisk, WhatIsSyncedSurvivesEveryPowerCut) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SimulatedDisk disk;
    writeFile(disk, "/a", "kept");
    disk.syncFolder("/");
    disk.powerCut(seed);
    ASSERT_TRUE(disk.exists("/a")) << "seed " << seed;
    EXPECT_EQ(disk.contents("/a"), "kept") << "seed " << seed;
  }
}

TEST(SimulatedDisk, ASecondFsyncAfterAFailedOneMeansNothing) {
  SimulatedDisk disk;
  const auto file = disk.create("/a");
  file->write("lost", 4);
  disk.failAt(disk.operations().size(), EIO);
  EXPECT_EQ(codeOf([&] { file->sync(); }), ErrorCode::kCannotWrite);
  file->sync();
  disk.syncFolder("/");
  EXPECT_EQ(disk.contents("/a"), "lost") << "still in the cache";
  disk.powerCut(1);
  EXPECT_EQ(disk.contents("/a"), "") << "but it never reached the disk";
}

TEST(SimulatedDisk, CrashesAndFailsWhereItIsTold) {
  SimulatedDisk disk;
  disk.crashAt(1);
  const auto file = disk.create("/a");
  EXPECT_THROW(file->write("abcd", 4), testing::SimulatedCrash);
  EXPECT_THROW(disk.syncFolder("/"), testing::SimulatedCrash) << "the dead do nothing more";
  disk.powerCut(1);
  EXPECT_EQ(disk.contents("/a"), "ab");
  disk.failAll(Op::kCreate, ENOSPC);
  EXPECT_EQ(codeOf([&] { disk.create("/b"); }), ErrorCode::kCannotWrite);
  disk.heal();
  writeFile(disk, "/b", "");
  EXPECT_EQ(disk.files(), (std::vector<fs::path>{"/a", "/b"}));
}

}  // namespace dtf
