#include "launcher/ssh/copy_store.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>

#include "common/base/error.h"
#include "tests/support/process.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kPlenty = uint64_t{1} << 40;

class CopyStoreTest : public ::testing::Test {
 protected:
  static std::string digest(const std::string& text) {
    Sha256 sha256;
    sha256.update(text);
    return sha256.finish();
  }
  static OfferedFile data(const std::string& text, const std::string& path) {
    return {digest(text), text.size(), "", path};
  }
  static OfferOrder offer(const std::vector<OfferedFile>& files) {
    OfferOrder order;
    order.files = files;
    return order;
  }
  static std::string read(const fs::path& file) { return readFile(file, 1 << 20); }
  // Acts as a job that brings the file and ends.
  void bring(const std::string& text) const {
    CopyStore store(root());
    if (!store.offer(offer({data(text, "/x")})).empty()) {
      store.makeRoom(kPlenty);
      store.receive(text);
    }
    EXPECT_TRUE(store.complete());
  }
  fs::path root() const { return fs::path(folder_.path()) / "copies"; }
  fs::path fileOf(const std::string& text) const { return root() / "files" / digest(text); }
  void usedHoursAgo(const std::string& text, int hours) const {
    const time_t at = ::time(nullptr) - hours * time_t{3600};
    const std::array<timespec, 2> times{timespec{at, 0}, timespec{0, UTIME_OMIT}};
    ASSERT_EQ(::utimensat(AT_FDCWD, fileOf(text).c_str(), times.data(), 0), 0);
  }
  size_t leftovers() const {
    size_t count = 0;
    for (const auto& entry : fs::recursive_directory_iterator(root()))
      if (entry.path().filename().string().starts_with(".")) ++count;
    return count;
  }

  testing::TemporaryFolder folder_;
};

TEST_F(CopyStoreTest, WhatIsLackingIsReceivedAndIsWhereTheTasksLookForIt) {
  {
    CopyStore store(root());
    const OfferOrder order = offer({data("one", "/home/me/a.csv"),
                                    data("", "/home/me/empty"),
                                    data("three", "/data/b"),
                                    data("one", "/data/again.csv"),
                                    {digest("#!/bin/sh\n"), 10, "psd", ""}});
    EXPECT_THAT(store.offer(order), ElementsAre(0, 1, 2, 4)) << "each content once";
    store.makeRoom(kPlenty);
    EXPECT_FALSE(store.complete());
    EXPECT_FALSE(store.receive("onet")) << "it is not on the disk yet";
    EXPECT_TRUE(store.receive("hree#!/bin/sh\n"));
    EXPECT_TRUE(store.complete());
    EXPECT_EQ(store.stored(), 18u);
    EXPECT_EQ(read(store.dataFolder() / "home/me/a.csv"), "one");
    EXPECT_EQ(read(store.dataFolder() / "home/me/empty"), "");
    EXPECT_EQ(read(store.dataFolder() / "data/b"), "three");
    EXPECT_EQ(read(store.dataFolder() / "data/again.csv"), "one");
    EXPECT_EQ(::access(store.program("psd").c_str(), X_OK), 0);
    EXPECT_EQ(store.program("psd").filename(), "psd");
  }
  EXPECT_EQ(leftovers(), 0u) << "what is in use goes with its user";
  EXPECT_EQ(read(fileOf("one")), "one");
}

TEST_F(CopyStoreTest, WhatIsThereIsNotSentAgain) {
  bring("table");
  CopyStore store(root());
  EXPECT_THAT(store.offer(offer({data("table", "/elsewhere/t.csv"), data("more", "/m")})),
              ElementsAre(1));
  EXPECT_EQ(read(store.dataFolder() / "elsewhere/t.csv"), "table");
}

TEST_F(CopyStoreTest, ACopyThatIsDamagedIsSentAgain) {
  bring("whole");
  fs::permissions(fileOf("whole"), fs::perms::owner_all);
  fs::resize_file(fileOf("whole"), 2);
  {
    CopyStore store(root());
    EXPECT_THAT(store.offer(offer({data("whole", "/x")})), ElementsAre(0));
    store.makeRoom(kPlenty);
    store.receive("whole");
    EXPECT_EQ(read(store.dataFolder() / "x"), "whole");
  }
  // Writes to the stored file and keeps its size.
  const auto change = [this](const fs::file_time_type& written) {
    fs::permissions(fileOf("whole"), fs::perms::owner_all);
    std::ofstream(fileOf("whole")) << "wrong";
    fs::last_write_time(fileOf("whole"), written);
  };
  const fs::file_time_type stored = fs::last_write_time(fileOf("whole"));
  change(fs::file_time_type::clock::now());
  {
    CopyStore store(root());
    EXPECT_THAT(store.offer(offer({data("whole", "/x")})), ElementsAre(0));
  }
  bring("whole");
  // A program's digest is computed again, whatever its times.
  change(stored);
  CopyStore store(root());
  EXPECT_THAT(store.offer(offer({{digest("whole"), 5, "psd", ""}})), ElementsAre(0));
}

TEST_F(CopyStoreTest, AFileThatChangedOnItsWayIsRefusedAndNotKept) {
  {
    CopyStore store(root());
    store.offer(offer({data("as offered", "/home/me/t.csv")}));
    store.makeRoom(kPlenty);
    try {
      store.receive("as written");
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadData);
      EXPECT_THAT(error.message(),
                  HasSubstr("/home/me/t.csv: the bytes that were sent differ from"));
    }
  }
  EXPECT_EQ(leftovers(), 0u);
  EXPECT_TRUE(fs::is_empty(root() / "files"));
}

TEST_F(CopyStoreTest, MoreThanWasLackingIsRefused) {
  CopyStore store(root());
  EXPECT_THROW(store.receive("x"), Error) << "before anything is offered";
  store.offer(offer({data("abc", "/x")}));
  store.makeRoom(kPlenty);
  EXPECT_THROW(store.receive("abcd"), Error);
  EXPECT_THROW(store.offer(offer({})), Error) << "after that";
}

TEST_F(CopyStoreTest, TheOldestThatNobodyUsesMakeRoom) {
  const std::string old(1000, 'o'), used(1000, 'u'), young(1000, 'y');
  for (const std::string& text : {old, used, young}) bring(text);
  usedHoursAgo(old, 2);
  usedHoursAgo(young, 1);
  CopyStore user(root());
  user.offer(offer({data(used, "/used")}));
  usedHoursAgo(used, 3);

  CopyStore store(root());
  const std::string incoming(500, 'n');
  store.offer(offer({data(incoming, "/new")}));
  store.makeRoom(2500);
  EXPECT_FALSE(fs::exists(fileOf(old)));
  EXPECT_TRUE(fs::exists(fileOf(used))) << "another job reads it";
  EXPECT_TRUE(fs::exists(fileOf(young))) << "there is room for it";
  store.receive(incoming);
  EXPECT_TRUE(store.complete());

  CopyStore third(root());
  third.offer(offer({data(std::string(600, 'z'), "/z")}));
  try {
    third.makeRoom(2000);
    FAIL() << "what is in use stays";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCannotWrite);
    EXPECT_THAT(error.message(), HasSubstr("launch.copy.max_gib"));
  }
}

TEST_F(CopyStoreTest, ADiskWithTooLittleRoomIsToldBeforeAnythingIsSent) {
  CopyStore store(root());
  OfferedFile huge = data("x", "/x");
  huge.bytes = uint64_t{1} << 58;
  store.offer(offer({huge}));
  try {
    store.makeRoom(UINT64_MAX);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCannotWrite);
    EXPECT_THAT(error.message(), HasSubstr("has no room for the copies: they need"));
    EXPECT_THAT(error.message(), HasSubstr("are free"));
  }
}

TEST_F(CopyStoreTest, FoldersWithoutFilesAreThere) {
  CopyStore store(root());
  OfferOrder order;
  order.folders = {"/images/cats", "/images/dogs"};
  EXPECT_THAT(store.offer(order), IsEmpty());
  store.makeRoom(kPlenty);
  EXPECT_TRUE(store.complete());
  EXPECT_TRUE(fs::is_directory(store.dataFolder() / "images/dogs"));
}

TEST_F(CopyStoreTest, AFolderThatIsNotThisUsersIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  fs::create_directory(root());
  ASSERT_EQ(::chown(root().c_str(), 65534, 65534), 0);
  try {
    const CopyStore store(root());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kPermission);
    EXPECT_THAT(error.message(), HasSubstr("is another user's"));
  }
}

TEST_F(CopyStoreTest, AFolderThatOthersMayWriteIsRefusedAndLeftAlone) {
  fs::create_directory(root());
  fs::permissions(root(), fs::perms::all);
  try {
    const CopyStore store(root());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kPermission);
    EXPECT_THAT(error.message(), HasSubstr("may be written by others"));
  }
  EXPECT_EQ(fs::status(root()).permissions(), fs::perms::all);
  EXPECT_TRUE(fs::is_empty(root()));
}

TEST_F(CopyStoreTest, WhatAKilledAgentLeftIsRemovedInTime) {
  bring("x");
  const fs::path old = root() / "files/.new-abcdef", young = root() / "files/.new-ghijkl";
  std::ofstream(old) << "half";
  std::ofstream(young) << "half";
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(1));
  const CopyStore store(root());
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(young)) << "perhaps its agent has not locked it yet";
}

TEST(CopiesFolder, IsInTheUsersCacheUnlessItIsNamed) {
  const std::string home = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
  ::setenv("HOME", "/home/me", 1);
  ::unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(copiesFolder(""), "/home/me/.cache/dtf/copies");
  EXPECT_EQ(copiesFolder("my/copies"), "/home/me/my/copies");
  EXPECT_EQ(copiesFolder("/scratch/copies"), "/scratch/copies");
  ::setenv("XDG_CACHE_HOME", "/cache", 1);
  EXPECT_EQ(copiesFolder(""), "/cache/dtf/copies");
  ::unsetenv("XDG_CACHE_HOME");
  ::unsetenv("HOME");
  EXPECT_THROW(copiesFolder(""), Error);
  if (!home.empty()) ::setenv("HOME", home.c_str(), 1);
}

}  // namespace dtf::launcher
