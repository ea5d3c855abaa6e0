#include "launcher/ssh/temporary_folder.h"

#include <gtest/gtest.h>

#include <fstream>

namespace dtf::launcher {
namespace {

namespace fs = std::filesystem;

TEST(TemporaryFolder, IsThisUsersAloneAndGoesWithWhatIsInIt) {
  fs::path path;
  {
    const TemporaryFolder folder;
    path = folder.path();
    EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_all);
    fs::create_directory(path / "a");
    std::ofstream(path / "a/key") << "key";
    EXPECT_NE(TemporaryFolder().path(), path);
  }
  EXPECT_FALSE(fs::exists(path));
}

}  // namespace
}  // namespace dtf::launcher
