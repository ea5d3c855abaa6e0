#include "launcher/binaries.h"

#include <gtest/gtest.h>

#include "common/base/error.h"
#include "tests/support/process.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

namespace {

class BinariesTest : public ::testing::Test {
 protected:
  // Makes empty executables; each name may have folders.
  void make(const std::vector<std::string>& names, fs::perms perms = fs::perms::owner_all) const {
    for (const std::string& name : names) {
      fs::create_directories((root() / name).parent_path());
      folder_.write(name, "");
      fs::permissions(root() / name, perms);
    }
  }
  fs::path root() const { return folder_.path(); }
  Binaries find(const std::string& path = "") const {
    return findBinaries(std::nullopt, root() / "bin", path);
  }

  testing::TemporaryFolder folder_;
};

}  // namespace

TEST_F(BinariesTest, InstalledOnesLieBesideTheLauncher) {
  make({"bin/psd", "bin/workerd", "other/psd", "other/workerd"});
  EXPECT_EQ(find((root() / "other").string()).psd, root() / "bin/psd") << "before those of PATH";
  EXPECT_EQ(find().workerd, root() / "bin/workerd");
}

TEST_F(BinariesTest, TheAgentLiesBesideTheLauncherOrInABuildTree) {
  make({"bin/dtf-agent", "build/launcher/dtf-agent"});
  EXPECT_EQ(findAgent(std::nullopt, root() / "bin"), root() / "bin/dtf-agent");
  EXPECT_EQ(findAgent(root() / "build", root() / "bin"), root() / "build/launcher/dtf-agent");
  EXPECT_THROW(findAgent(std::nullopt, root()), Error);
}

TEST_F(BinariesTest, InABuildTreeEachHasAFolderOfItsOwn) {
  make({"daemons/psd/psd", "daemons/workerd/workerd"});
  EXPECT_EQ(find().psd, root() / "daemons/psd/psd");
  EXPECT_EQ(find().workerd, root() / "daemons/workerd/workerd");
  EXPECT_EQ(findBinaries(root(), "/nowhere", "").psd, root() / "daemons/psd/psd")
      << "--bin-dir may name the build folder";
}

TEST_F(BinariesTest, ElseThoseOfThePath) {
  make({"one/psd", "two/psd", "two/workerd"});
  const Binaries found = find((root() / "one").string() + "::" + (root() / "two").string());
  EXPECT_EQ(found.psd, root() / "one/psd") << "the first folder that has one";
  EXPECT_EQ(found.workerd, root() / "two/workerd");
}

TEST_F(BinariesTest, AGivenFolderIsTheOnlyOne) {
  make({"bin/psd", "bin/workerd"});
  fs::create_directories(root() / "empty");
  EXPECT_THROW(findBinaries(root() / "empty", root() / "bin", (root() / "bin").string()), Error);
}

TEST_F(BinariesTest, WhatCannotBeRunIsNotFound) {
  make({"bin/psd"}, fs::perms::owner_read);
  fs::create_directories(root() / "bin/workerd");
  try {
    find((root() / "x").string());
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    for (const std::string& part :
         {std::string("'psd'"), (root() / "bin").string(), std::string("nor in PATH"),
          std::string("--bin-dir"), std::string("over ssh with launch.binary_dir")})
      EXPECT_NE(error.message().find(part), std::string::npos) << part << "\n" << error.message();
  }
}

}  // namespace dtf::launcher
