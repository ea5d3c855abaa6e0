#include "launcher/init/job_draft.h"

#include <gmock/gmock.h>

namespace dtf::launcher {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(JobDraft, FewExamplesAreAllTrainedOnAndManyLeaveATenth) {
  JobDraft draft;
  planExamples(draft, 9, false);
  EXPECT_EQ(draft.split, 0);
  EXPECT_FALSE(draft.evaluates);
  planExamples(draft, 100, false);
  EXPECT_EQ(draft.split, 0.2);
  planExamples(draft, 60'000, false);
  EXPECT_EQ(draft.split, 0.1);
  planExamples(draft, 100, true);
  EXPECT_EQ(draft.split, 0);
  EXPECT_TRUE(draft.evaluates);
}

TEST(JobDraft, TheBestEvaluationStaysWhereThereAreEvaluations) {
  JobDraft draft;
  planExamples(draft, 100, false);
  addOutput(draft, {.classes = 2});
  EXPECT_THAT(jobText(draft, {"a", "a.yaml"}),
              HasSubstr("\n  checkpoint: {gather: true, keep_best: accuracy}\n"));
  EXPECT_THAT(nextCommands(draft, {"a", "a.yaml"})[1], HasSubstr("predict a.yaml --best --input"));
  addOutput(draft, {.numbers = 1});
  EXPECT_THAT(jobText(draft, {"a", "a.yaml"}), HasSubstr("keep_best: mean_absolute_error}"));
  addOutput(draft, {.numbers = 3, .tags = true});
  EXPECT_THAT(jobText(draft, {"a", "a.yaml"}), HasSubstr("keep_best: auc}"));
  JobDraft all_trained;
  planExamples(all_trained, 100, false);
  addOutput(all_trained, {.classes = 2});
  trainOnAll(all_trained);
  for (const char* key : {"keep_best", "metrics", "eval"})
    EXPECT_THAT(jobText(all_trained, {"a", "a.yaml"}), Not(HasSubstr(key)));
  EXPECT_THAT(nextCommands(all_trained, {"a", "a.yaml"})[1], Not(HasSubstr("--best")));
}

TEST(JobDraft, ANumberWithAnOddScaleHasNoScalingLayer) {
  JobDraft draft;
  planExamples(draft, 100, false);
  addOutput(draft, {.mean = 1e12, .deviation = 1});
  for (const std::string& line : draft.model) EXPECT_THAT(line, Not(HasSubstr("normalization")));
  addOutput(draft, {.mean = 250'000, .deviation = 80'000});
  EXPECT_THAT(draft.model, ::testing::Contains(HasSubstr("mean: [-3.125], std: [1.25e-05]")));
}

TEST(JobDraft, NamesAreMadeOfPlainCharacters) {
  EXPECT_EQ(plainName("user id", "a"), "user_id");
  EXPECT_EQ(plainName("--x..y--", "a"), "x_y--");
  EXPECT_EQ(plainName("(%)", "a"), "a");
  EXPECT_EQ(plainName("Größe", "a"), "Gr_e");
  EXPECT_LE(plainName(std::string(500, 'x'), "a").size(), 128u);
}

TEST(JobDraft, PathsStartAtTheFile) {
  EXPECT_EQ(yamlPath("/a/b/t.csv", "/a/b"), "t.csv");
  EXPECT_EQ(yamlPath("/a/t.csv", "/a/b"), "\"../t.csv\"");
  EXPECT_EQ(yamlPath("/z/t.csv", "/a/b/c/d/e"), "\"/z/t.csv\"");
  EXPECT_EQ(yamlPath("/a/~x.csv", "/a"), "\"./~x.csv\"");
  EXPECT_EQ(yamlPath("/a/shapes/", "/a"), "shapes");
}

TEST(JobDraft, CommandsAreWordsOfAShell) {
  JobDraft draft;
  draft.input = "my data.csv";
  EXPECT_EQ(nextCommands(draft, {"a", "my job.yaml"})[1],
            "dtf-launch predict 'my job.yaml' --input 'my data.csv'");
  draft.input = "it's.csv";
  EXPECT_THAT(nextCommands(draft, {"a", "a.yaml"})[1], HasSubstr("--input 'it'\\''s.csv'"));
}

TEST(JobDraft, AFindingIsOneLineOfAComment) {
  JobDraft draft;
  planExamples(draft, 100, false);
  draft.findings = {"a\nb: c"};
  EXPECT_THAT(jobText(draft, {"a", "a.yaml"}), HasSubstr("#   a b: c\n"));
}

}  // namespace
}  // namespace dtf::launcher
