#include "launcher/placement/auto_placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "tests/support/temporary_files.h"
#include "tests/unit/launcher/placement/placement_fixture.h"

namespace dtf::launcher {
namespace {

using ::testing::HasSubstr;

constexpr const char* kHere = "{ps: {count: 2}, worker: {count: 2}}";

TEST(AutoPlacement, AJobOfOneProcessHasNothingToChoose) {
  EXPECT_TRUE(choosesPlacement(jobOf(kApart, kSyncAuto)));
  EXPECT_FALSE(choosesPlacement(jobOf(kApart, "  replication: {mode: sync}\n")));
  EXPECT_FALSE(choosesPlacement(jobOf("{worker: [local]}", "  placement: auto\n")));
}

// Nothing leaves it, so nothing is measured.
TEST(AutoPlacement, OneHostKeepsTheFilesTasks) {
  const KeptPlacement choice =
      measurePlacement(jobOf(kHere, kSyncAuto), {}, {}, readerOf(jobText(kHere, kSyncAuto)));
  EXPECT_THAT(choice.text, HasSubstr("ps, "));
  EXPECT_THAT(choice.text, HasSubstr("all tasks are on one host"));
  EXPECT_EQ(choice.overrides, std::vector<std::string>{"train.placement={\"strategy\":\"even\"}"});
}

TEST(AutoPlacement, HostsWithoutAnAgentAreRefusedWithTheRemedy) {
  try {
    measurePlacement(jobOf("{worker: ['192.0.2.7:1', '192.0.2.8:1']}", kSyncAuto), {}, {},
                     readerOf(""));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    EXPECT_THAT(error.message(), HasSubstr("job.yaml:8:14: error: 'placement: auto'"));
    EXPECT_THAT(error.message(), HasSubstr("the tasks on 192.0.2.7 are started otherwise"));
    EXPECT_THAT(error.message(), HasSubstr("explain --measure --set launch.via=ssh"));
  }
}

// A run that goes on keeps its placement, unless it has other hosts.
TEST(AutoPlacement, TheChoiceOfTheRunIsKept) {
  const testing::TemporaryFiles folder;
  cluster::JobSpec job = jobOf(kHere, kSyncAuto);
  job.run_dir = "run";
  EXPECT_FALSE(keptPlacement(job));
  const KeptPlacement choice = measurePlacement(job, {}, {}, readerOf(jobText(kHere, kSyncAuto)));
  keepPlacement(job.run_dir, choice);
  EXPECT_EQ(keptPlacement(job), choice);
  cluster::JobSpec other = jobOf(kApart, kSyncAuto);
  other.run_dir = "run";
  EXPECT_FALSE(keptPlacement(other));
}

}  // namespace
}  // namespace dtf::launcher
