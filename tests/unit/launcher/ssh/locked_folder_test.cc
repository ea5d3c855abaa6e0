#include "launcher/ssh/locked_folder.h"

#include <gtest/gtest.h>
#include <sys/utsname.h>

#include <filesystem>
#include <fstream>

#include "common/base/error.h"
#include "tests/support/process.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

TEST(LockedFolder, GoesWithItsOwnerAndTakesTheAbandonedAlong) {
  const testing::TemporaryFolder parent;
  utsname names{};
  ASSERT_EQ(::uname(&names), 0);
  const fs::path abandoned =
      fs::path(parent.path()) / (".use-" + std::string(names.nodename) + "-killed");
  const fs::path another = fs::path(parent.path()) / ".other-x";
  // On a shared disk, a host doesn't see the locks of others.
  const fs::path elsewhere = fs::path(parent.path()) / ".use-another.host-killed";
  fs::create_directories(abandoned / "data");
  fs::create_directory(another);
  fs::create_directory(elsewhere);
  fs::path place;
  {
    const LockedFolder first(parent.path(), ".use-");
    const LockedFolder second(parent.path(), ".use-");
    place = first.path();
    EXPECT_NE(place, second.path());
    EXPECT_EQ(fs::status(place).permissions(), fs::perms::owner_all);
    EXPECT_FALSE(fs::exists(abandoned));
    EXPECT_TRUE(fs::exists(another)) << "it has another prefix";
    EXPECT_TRUE(fs::exists(elsewhere)) << "it is another host's";
    std::ofstream(place / "file") << "x";
  }
  EXPECT_FALSE(fs::exists(place));
}

TEST(LockedFolder, AParentThatIsNotThereIsNamed) {
  try {
    const LockedFolder folder("/no/such/folder", ".use-");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCannotWrite);
    EXPECT_NE(error.message().find("/no/such/folder"), std::string::npos) << error.message();
  }
}

}  // namespace dtf::launcher
