#include "launcher/run_settings.h"

#include <gtest/gtest.h>

#include "tests/support/process.h"

namespace dtf::launcher {

TEST(RunSettings, AreKeyPathsWithValues) {
  const auto settings = settingsIn(
      "# dtf 0.1.0, a time: the job as it was understood, with --set and defaults\n"
      "# data.train: 500 examples of [28, 28, 1]\n"
      "# data.train: content: 0a1a52c7446eaee8\n"
      "# data.seed: 1\n"
      "# optimizer.beta1: 0.9\n"
      "job: tiny\n"
      "cluster: {ps: ['[::1]:1'], worker: ['127.0.0.1:41049', {address: 'h:7', threads: 2}]}\n"
      "train:\n"
      "  model:\n"
      "    input: {shape: [28, 28, 1]}\n"
      "    layers: [flatten, dense: {units: 10}, dropout: ]\n"
      "  data: {seed: 1}\n"
      "  checkpoint: {}\n"
      "run_dir: runs/tiny\n");
  ASSERT_TRUE(settings.has_value());
  EXPECT_EQ(*settings, (RunSettings{{"cluster.ps", "[[::1]]"},
                                    {"cluster.worker[0]", "127.0.0.1"},
                                    {"cluster.worker[1].address", "h"},
                                    {"cluster.worker[1].threads", "2"},
                                    {"data.train", "500 examples of [28, 28, 1]"},
                                    {"data.train content", "0a1a52c7446eaee8"},
                                    {"train.checkpoint", "{}"},
                                    {"train.data.seed", "1"},
                                    {"train.model.input.shape", "[28, 28, 1]"},
                                    {"train.model.layers[0]", "flatten"},
                                    {"train.model.layers[1].dense.units", "10"},
                                    {"train.model.layers[2].dropout", "null"}}));
}

TEST(RunSettings, OfAFileThatCantBeReadAreUnknown) {
  const testing::TemporaryFolder folder;
  EXPECT_EQ(settingsIn("a: [\n"), std::nullopt);
  EXPECT_EQ(settingsIn("a\n"), std::nullopt);
  EXPECT_EQ(readSettings(folder.path()), std::nullopt);
  folder.write("job.yaml", "train: {steps: 5}\n");
  EXPECT_EQ(readSettings(folder.path()), (RunSettings{{"train.steps", "5"}}));
}

TEST(RunSettings, DifferencesHaveAValueOfEachRun) {
  const RunSettings runs[] = {
      {{"a", "1"}, {"b", "2"}, {"c", "3"}}, {{"a", "1"}, {"b", "4"}}, {{"a", "1"}, {"b", "2"}}};
  const std::vector<SettingDifference> found = differencesOf(runs);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].key, "b");
  EXPECT_EQ(found[0].values, (std::vector<std::optional<std::string>>{"2", "4", "2"}));
  EXPECT_EQ(found[1].key, "c");
  EXPECT_EQ(found[1].values,
            (std::vector<std::optional<std::string>>{"3", std::nullopt, std::nullopt}));
}

}  // namespace dtf::launcher
