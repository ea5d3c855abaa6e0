#include "launcher/kept_checkpoints.h"

#include <gmock/gmock.h>

#include "common/train/evaluation_history.h"
#include "tests/unit/launcher/trained_fixture.h"

namespace dtf::launcher {
namespace {

using ::testing::HasSubstr;

class KeptCheckpoints : public TrainedTest {};

TEST_F(KeptCheckpoints, HaveTheirStepTimeAndSize) {
  EXPECT_TRUE(keptCheckpoints(job_, runDir()).empty());
  imported();
  const std::vector<KeptCheckpoint> kept = keptCheckpoints(job_, runDir());
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].step, 0u);
  EXPECT_TRUE(kept[0].saved.starts_with("20")) << kept[0].saved;
  EXPECT_GT(kept[0].bytes, 7850u * sizeof(float));
  EXPECT_FALSE(kept[0].is_best);
  EXPECT_THAT(printed([this] { return status(job_, options_, net::Credentials::ownUser()); }),
              HasSubstr("  kept        step 0, " + kept[0].saved + ", "));
}

TEST_F(KeptCheckpoints, TheBestIsThatOfTheBestEvaluation) {
  imported();
  job_.train->checkpoint->keep_best = "loss";
  train::writeEvaluations(runDir() / "checkpoints",
                          std::vector<train::PastEvaluation>{{0, 0, {{"loss", 0.5}}}});
  const std::vector<KeptCheckpoint> kept = keptCheckpoints(job_, runDir());
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_TRUE(kept[0].is_best);
  EXPECT_EQ(checkpointsJson(kept)[0]["best"], true);
}

TEST_F(KeptCheckpoints, OneThatIsDamagedIsListedByItsStep) {
  imported();
  folder_.write("run/checkpoints/step-0/manifest.json", "{}");
  EXPECT_EQ(checkpointRows(keptCheckpoints(job_, runDir())),
            std::vector<std::string>{"step 0, which can't be read"});
}

TEST_F(KeptCheckpoints, OfManyTheNewestAndTheBestAreShown) {
  std::vector<KeptCheckpoint> kept;
  for (uint64_t step = 10; step <= 200; step += 10)
    kept.push_back({step, "noon", 2048, step == 30});
  const std::vector<std::string> rows = checkpointRows(kept);
  ASSERT_EQ(rows.size(), 10u);
  EXPECT_EQ(rows.front(), "step 30, noon, 2.0 KiB, the best");
  EXPECT_EQ(rows[1], "step 130, noon, 2.0 KiB");
  EXPECT_EQ(rows.back(), "20 in all");
}

}  // namespace
}  // namespace dtf::launcher
