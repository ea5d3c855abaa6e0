#include "common/train/slowest_worker.h"

#include <gtest/gtest.h>

namespace dtf::train {
namespace {

using replication::Phase;
using replication::Straggler;
using std::chrono::milliseconds;

TEST(SlowestWorker, WithoutANamedWorkerThereIsNone) {
  SlowestWorker slowest(2);
  slowest.note(std::nullopt);
  EXPECT_FALSE(slowest.most());
  slowest.note(Straggler{7, Phase::kData, milliseconds(1)});
  EXPECT_FALSE(slowest.most()) << "there is no worker/7";
}

TEST(SlowestWorker, TheWorkerWithTheMostTimeIsIt) {
  SlowestWorker slowest(3);
  for (int i = 0; i < 5; ++i) slowest.note(Straggler{1, Phase::kData, milliseconds(1)});
  slowest.note(Straggler{2, Phase::kCompute, milliseconds(20)});
  for (int i = 0; i < 2; ++i) slowest.note(Straggler{2, Phase::kSend, milliseconds(30)});
  ASSERT_TRUE(slowest.most());
  EXPECT_EQ(slowest.most()->rank, 2u);
  EXPECT_EQ(slowest.most()->phase, Phase::kSend);
  EXPECT_EQ(slowest.most()->steps, 3u);
  EXPECT_DOUBLE_EQ(slowest.most()->seconds, 0.08);
}

}  // namespace
}  // namespace dtf::train
