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
  // Answered although the stopper has not returned; the phase changes before Training waits for it.
  while (status_.phase() == WorkerPhase::kTraining) std::this_thread::yield();
  EXPECT_FALSE(returned);
  go_on.set_value();
  ended.get();
  EXPECT_TRUE(returned);
  EXPECT_TRUE(asked.get());
}

}  // namespace dtf::workerd
