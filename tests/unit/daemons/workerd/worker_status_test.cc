#include "daemons/workerd/worker_status.h"

#include <gtest/gtest.h>

#include <future>
#include <optional>
#include <thread>
#include <vector>

namespace dtf::workerd {

class WorkerStatusTest : public ::testing::Test {
 protected:
  WorkerStatus::Stopper stopper() {
    return [this](WorkerStatus::Refused refused) {
      ++asked_;
      refused_ = std::move(refused);
    };
  }
  bool askToEnd() {
    return status_.askToEnd([this](const Error& reason) { reason_ = reason.message(); });
  }

  WorkerStatus status_;
  int asked_ = 0;
  WorkerStatus::Refused refused_;
  std::string reason_;
};

TEST_F(WorkerStatusTest, BeforeTrainingNothingIsLostByEndingAtOnce) {
  EXPECT_EQ(status_.phase(), WorkerPhase::kStarting);
  EXPECT_FALSE(askToEnd());
}

TEST_F(WorkerStatusTest, ARequestBetweenTheRestoredValuesAndTrainingWaitsForTraining) {
  status_.hasValues();
  EXPECT_TRUE(askToEnd()) << "the values of the ps would be lost";
  EXPECT_EQ(asked_, 0);
  const WorkerStatus::Training training(status_, stopper());
  EXPECT_EQ(asked_, 1);
}

TEST_F(WorkerStatusTest, WhileTrainingTheJobIsAskedAndMayRefuse) {
  const WorkerStatus::Training training(status_, stopper());
  EXPECT_EQ(status_.phase(), WorkerPhase::kTraining);
  EXPECT_TRUE(askToEnd());
  EXPECT_EQ(asked_, 1);
  refused_(Error(ErrorCode::kDeadline, "ps/0 does not answer"));
  EXPECT_EQ(reason_, "ps/0 does not answer");
}

TEST_F(WorkerStatusTest, WhileItSavesAtTheEndTheSignalWaitsForIt) {
  std::optional<WorkerStatus::Training> training;
  training.emplace(status_, stopper());
  training.reset();
  EXPECT_EQ(status_.phase(), WorkerPhase::kFinishing);
  EXPECT_TRUE(askToEnd()) << "the last checkpoint would be lost";
  EXPECT_EQ(asked_, 0) << "what the stopper refers to is gone";
}

TEST_F(WorkerStatusTest, AWorkerThatWasFinishingTrainsOnWhenAPsWentBack) {
  { const WorkerStatus::Training first(status_, stopper()); }
  const WorkerStatus::Training second(status_, stopper());
  EXPECT_EQ(status_.phase(), WorkerPhase::kTraining);
  EXPECT_TRUE(askToEnd());
  EXPECT_EQ(asked_, 1) << "of the second, whose stopper it is now";
}

TEST_F(WorkerStatusTest, ASignalThatCameWhileItWasFinishingIsAskedWhenItTrainsOn) {
  { const WorkerStatus::Training first(status_, stopper()); }
  EXPECT_TRUE(askToEnd());
  EXPECT_EQ(asked_, 0);
  {
    const WorkerStatus::Training second(status_, stopper());
    EXPECT_EQ(asked_, 1);
    refused_(Error(ErrorCode::kDeadline, "ps/0 does not answer"));
    EXPECT_EQ(reason_, "ps/0 does not answer");
  }
  const WorkerStatus::Training third(status_, stopper());
  EXPECT_EQ(asked_, 1) << "once";
}

TEST_F(WorkerStatusTest, WhenTrainingThrowsItsStopperIsNotCalledAnyMore) {
  try {
    const WorkerStatus::Training training(status_, stopper());
    throw Error(ErrorCode::kTrainingFailed, "no number");
  } catch (const Error&) {
  }
  EXPECT_TRUE(askToEnd()) << "the job ends by itself, with its own error";
  EXPECT_EQ(asked_, 0);
}

TEST_F(WorkerStatusTest, WithoutCheckpointsItEndsAtOnceInEveryPhase) {
  std::optional<WorkerStatus::Training> training;
  training.emplace(status_, nullptr);
  EXPECT_FALSE(askToEnd());
  training.reset();
  EXPECT_FALSE(askToEnd());
}

TEST_F(WorkerStatusTest, TheOthersAreToldForAsLongAsSomebodyCanTellThem) {
  std::string told;
  status_.tellOthers(Error(ErrorCode::kUnavailable, "before"));
  {
    const WorkerStatus::Telling telling(status_,
                                        [&told](const Error& reason) { told += reason.message(); });
    status_.tellOthers(Error(ErrorCode::kUnavailable, "it was ended by signal 2"));
  }
  status_.tellOthers(Error(ErrorCode::kUnavailable, "afterwards"));
  EXPECT_EQ(told, "it was ended by signal 2");
}

TEST_F(WorkerStatusTest, WhoIsCalledMayLookAtTheStatus) {
  std::vector<WorkerPhase> seen;
  const WorkerStatus::Training training(
      status_, [&](const WorkerStatus::Refused&) { seen.push_back(status_.phase()); });
  askToEnd();
  EXPECT_EQ(seen, (std::vector<WorkerPhase>{WorkerPhase::kTraining}));
}

TEST_F(WorkerStatusTest, ATellerThatThrowsHasReturned) {
  const Error reason(ErrorCode::kUnavailable, "ended by signal 2");
  const WorkerStatus::Telling telling(status_, [](const Error& error) { throw Error(error); });
  EXPECT_THROW(status_.tellOthers(reason), Error);
  EXPECT_THROW(status_.tellOthers(reason), Error);
}

TEST_F(WorkerStatusTest, TrainingEndsWhenItsStopperHasReturned) {
  std::promise<void> called, go_on;
  bool returned = false;
  std::optional<WorkerStatus::Training> training;
  training.emplace(status_, [&](const WorkerStatus::Refused&) {
    called.set_value();
    go_on.get_future().wait();
    returned = true;
  });
  std::future<bool> asked = std::async(std::launch::async, [&] { return askToEnd(); });
  called.get_future().wait();
  std::future<void> ended = std::async(std::launch::async, [&] { training.reset(); });
  // The reply comes before the stopper returns; the phase changes before Training waits for it.
  while (status_.phase() == WorkerPhase::kTraining) std::this_thread::yield();
  EXPECT_FALSE(returned);
  go_on.set_value();
  ended.get();
  EXPECT_TRUE(returned);
  EXPECT_TRUE(asked.get());
}

// For the service manager, which displays it.
TEST_F(WorkerStatusTest, SaysWhatItDoesInALine) {
  EXPECT_EQ(status_.text(), "starting");
  status_.awaits("ps/0");
  EXPECT_EQ(status_.text(), "starting, waiting for ps/0");
  status_.goesOn();
  std::optional<WorkerStatus::Training> training;
  training.emplace(status_, nullptr);
  EXPECT_EQ(status_.text(), "training");
  status_.global_step = 12;
  status_.steps = 100;
  status_.loss = 0.25F;
  EXPECT_EQ(status_.text(), "step 12 of 100, loss 0.25");
  status_.awaits("worker/1 in step 13");
  EXPECT_EQ(status_.text(), "step 12 of 100, loss 0.25, waiting for worker/1 in step 13");
  status_.goesOn();
  training.reset();
  EXPECT_EQ(status_.text(), "step 12 of 100, loss 0.25, finishing");
}

TEST_F(WorkerStatusTest, TheHeartbeatsAreAskedForAsLongAsThereAreAny) {
  int asked = 0, answered = 0;
  std::function<void()> answer;
  status_.askHeartbeats([&answered] { ++answered; });
  EXPECT_EQ(answered, 1) << "nobody hangs who is not there";
  {
    const WorkerStatus::Asking asking(status_, [&](std::function<void()> given) {
      ++asked;
      answer = std::move(given);
    });
    status_.askHeartbeats([&answered] { ++answered; });
  }
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(answered, 1) << "before its loop has come to it";
  answer();
  EXPECT_EQ(answered, 2);
}

}  // namespace dtf::workerd
