#include "launcher/finished.h"

#include "tests/unit/launcher/trained_fixture.h"

namespace dtf::launcher {
namespace {

class Finished : public TrainedTest {};

// tests/e2e/kept_test.cc tests a job without steps left.
TEST_F(Finished, AJobWithStepsLeftIsStarted) {
  EXPECT_FALSE(answerFinished(job_, options_)) << "it has no run";
  imported();
  EXPECT_FALSE(answerFinished(job_, options_)) << "it has no summary";
  folder_.write("run/summary.json", R"({"outcome": "done"})");
  EXPECT_FALSE(answerFinished(job_, options_)) << "the checkpoint is of step 0 of 5";
}

TEST_F(Finished, OneThatBeginsAnewIsStarted) {
  options_.fresh = true;
  folder_.write("summary.json", R"({"outcome": "done"})");
  job_.run_dir = folder_.path();
  EXPECT_FALSE(answerFinished(job_, options_));
}

TEST_F(Finished, FilesTrainTheSameIfTheirTreesAreTheSame) {
  const std::string text =
      "job: a\ntrain:\n  data: {seed: 1, batch_size: 2}\n  steps: 5\ntimeouts: {x: 1}\n";
  EXPECT_TRUE(trainsTheSame(text, text));
  EXPECT_TRUE(trainsTheSame(
      text,
      "# of another version\ntrain:\n\n  # five\n  steps: 5\n\n  data:\n    batch_size: 2\n"
      "    seed: 1\njob: b\n"));
  EXPECT_TRUE(trainsTheSame(job_.text, "# 'train:'\n" + job_.text));
  for (const char* other :
       {"train:\n  data: {seed: 1, batch_size: 2}\n  steps: 6\n",
        "train:\n  data: {seed: 1, batch_size: 2}\n  steps: '5'\n",
        "train:\n  data: {seed: 1}\n  steps: 5\n",
        "train:\n  data: {seed: 1, batch_size: 2}\n  steps: 5\n  epochs: 1\n", "job: a\n", "",
        "train: [", "more:\n  train:\n    data: {seed: 1, batch_size: 2}\n    steps: 5\n"})
    EXPECT_FALSE(trainsTheSame(text, other)) << other;
  EXPECT_FALSE(trainsTheSame("train: {metrics: [a, b]}", "train: {metrics: [b, a]}"));
}

}  // namespace
}  // namespace dtf::launcher
