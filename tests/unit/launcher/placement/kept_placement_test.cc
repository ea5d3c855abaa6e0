#include "launcher/placement/kept_placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "common/base/file.h"
#include "tests/support/temporary_files.h"
#include "tests/unit/launcher/placement/placement_fixture.h"

namespace dtf::launcher {
namespace {

using ::testing::HasSubstr;

TEST(KeptPlacement, IsReadAsItWasWritten) {
  const testing::TemporaryFiles folder;
  EXPECT_FALSE(readPlacement("."));
  const KeptPlacement kept{"key", "ps, 3 ms", 0.003, {"train.placement={strategy: even}"}};
  keepPlacement(".", kept);
  EXPECT_EQ(readPlacement("."), kept);
}

TEST(KeptPlacement, ADamagedFileIsAnErrorThatSaysWhatToDo) {
  const testing::TemporaryFiles folder;
  for (const char* text :
       {"", "{}", R"({"schema":2})", R"({"schema":1,"checksum":"00","placement":{}})"}) {
    folder.write(kPlacementFile, text);
    try {
      readPlacement(".");
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadData) << text;
      EXPECT_THAT(error.message(), HasSubstr("remove it"));
    }
  }
}

TEST(KeptPlacement, ATurnedDigitIsNoticed) {
  const testing::TemporaryFiles folder;
  keepPlacement(".", {"key", "ps, 3 ms", 0.003, {"a=b"}});
  std::string text = readFile(kPlacementFile, 1 << 20);
  text[text.find("a=b")] = 'c';
  folder.write(kPlacementFile, text);
  EXPECT_THROW(readPlacement("."), Error);
}

TEST(KeptPlacement, IsOfTheHostsTheModelAndItsBytes) {
  const std::string key = placementKey(jobOf(kApart, kSyncAuto));
  EXPECT_EQ(key, placementKey(jobOf(kApart, kSyncAuto + "  steps: 7\n")));
  EXPECT_NE(key, placementKey(jobOf(kApart, kSyncAuto + "  optimizer: adam\n")));
  EXPECT_NE(key, placementKey(jobOf(kApart, "  placement: auto\n")));
  const std::string alone = "{worker: ['10.0.0.3:1', '10.0.0.4:1']}";
  EXPECT_NE(placementKey(jobOf(alone, kSyncAuto)),
            placementKey(jobOf(alone,
                               "  replication: {mode: sync, leader: worker/1}\n"
                               "  placement: auto\n")));
  EXPECT_NE(key, placementKey(jobOf("{ps: ['10.0.0.1:1'], worker: ['10.0.0.3:1', '10.0.0.4:1']}",
                                    kSyncAuto)));
}

}  // namespace
}  // namespace dtf::launcher
