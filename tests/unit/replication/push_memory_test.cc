#include "common/replication/push_memory.h"

#include <gtest/gtest.h>

namespace dtf::replication {
namespace {

TEST(PushMemory, KnowsWhoWasInTheLastUpdatesAndWhatEachPushedLast) {
  PushMemory memory;
  memory.workers.resize(3);
  memory.applied({{{0, Incarnation{7}, 4}, {2, Incarnation{9}, 4}}, 0.5f});
  memory.applied({{{1, Incarnation{8}, 5, 9}}, 0.25f});
  EXPECT_EQ(memory.loss, 0.25f);
  EXPECT_EQ(memory.workers[0], (PushMemory::Worker{Incarnation{7}, 5, 0b10, 0.5f}));
  EXPECT_EQ(memory.workers[1], (PushMemory::Worker{Incarnation{8}, 6, 0b01, 0.25f, 9}));
  EXPECT_EQ(memory.workers[2], (PushMemory::Worker{Incarnation{9}, 5, 0b10, 0.5f}));
}

TEST(PushMemoryDeathTest, RefusesAWorkerThatIsNone) {
  PushMemory memory;
  memory.workers.resize(1);
  EXPECT_DEATH(memory.applied({{{1, Incarnation{7}, 4}}, 0}), "push.rank");
}

}  // namespace
}  // namespace dtf::replication
