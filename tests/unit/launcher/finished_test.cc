#include "launcher/finished.h"

#include "tests/unit/launcher/trained_fixture.h"

namespace dtf::launcher {
namespace {

class Finished : public TrainedTest {};

// The answer to a job that is done: tests/e2e/kept_test.cc.
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

}  // namespace
}  // namespace dtf::launcher
