#include "common/train/patience_check.h"

#include <gtest/gtest.h>

namespace dtf::train {
namespace {

cluster::TrainSpec evaluatedEvery(uint64_t every_steps, uint64_t patience) {
  cluster::TrainSpec train;
  train.data.batch_size = 100;
  train.eval_every_steps = every_steps;
  train.early_stopping = cluster::EarlyStoppingSpec{.patience = patience};
  return train;
}

// The evaluation behind the last step ends nothing, and the first one has nothing to improve on.
TEST(PatienceCheck, OneMoreEvaluationThanThePatienceIsNeeded) {
  cluster::TrainSpec train = evaluatedEvery(10, 9);
  train.steps = 101;
  EXPECT_EQ(patienceFault(train, 1000, 2), "");
  train.steps = 100;
  EXPECT_EQ(patienceFault(train, 1000, 2),
            "early_stopping can't end the job: its patience is 9 evaluations, and there are 9 "
            "before the last of 100 steps (eval.every_steps: 10); set patience to 8 at most, or "
            "evaluate more often");
  train.early_stopping->patience = 8;
  EXPECT_EQ(patienceFault(train, 1000, 2), "");
}

TEST(PatienceCheck, WhereNoPatienceHelpsNoneIsAdvised) {
  cluster::TrainSpec train = evaluatedEvery(10, 1);
  train.steps = 20;
  EXPECT_NE(patienceFault(train, 1000, 2)
                .find("there is 1 before the last of 20 steps (eval.every_steps: 10); evaluate"),
            std::string::npos);
}

TEST(PatienceCheck, EpochsAreStepsOnceTheDataAreKnown) {
  cluster::TrainSpec train = evaluatedEvery(10, 9);
  train.epochs = 10;
  EXPECT_NE(patienceFault(train, 1000, 2).find("before the last of 100 steps"), std::string::npos);
  EXPECT_EQ(patienceFault(train, 0, 2), "") << "not known before they are read";
  train.epochs = 11;
  EXPECT_EQ(patienceFault(train, 1000, 2), "");
}

TEST(PatienceCheck, AJobWithoutEarlyStoppingHasNoFault) {
  cluster::TrainSpec train = evaluatedEvery(10, 9);
  train.early_stopping.reset();
  train.steps = 10;
  EXPECT_EQ(patienceFault(train, 1000, 2), "");
}

}  // namespace
}  // namespace dtf::train
