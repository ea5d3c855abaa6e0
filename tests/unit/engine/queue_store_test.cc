#include "common/engine/queue_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/graph/error_text.h"

namespace dtf::engine {
namespace {

using graph::testing::errorText;
using ::testing::AllOf;
using ::testing::HasSubstr;

const ResourceKey kJobs{"/job:ps/task:0", "", "jobs"};
const graph::QueueSpec kNumbers{{{DType::kFloat32, {2}}}, 4};
const graph::QueueSpec kMore{{{DType::kFloat32, {2}}}, 5};

void put(FifoQueue& queue) {
  FifoQueue::Elements one;
  one.push_back(queue.newElement());
  queue.enqueue(std::move(one), [](FifoQueue::Outcome) {});
}

TEST(QueueStore, WhoNamesTheSameQueueSharesIt) {
  QueueStore store;
  const auto queue = store.use(kJobs, kNumbers, "jobs");
  EXPECT_EQ(store.use(kJobs, kNumbers, "again"), queue);
  EXPECT_NE(store.use({kJobs.device, "mine", "jobs"}, kNumbers, "jobs"), queue);
  EXPECT_NE(store.use({"/job:ps/task:1", "", "jobs"}, kNumbers, "jobs"), queue);
}

TEST(QueueStore, AQueueIsWhatItIsAsLongAsSomebodyUsesItOrItSaysSomething) {
  QueueStore store;
  auto queue = store.use(kJobs, kNumbers, "jobs");
  EXPECT_THAT(errorText([&] { store.use(kJobs, kMore, "other"); }),
              AllOf(HasSubstr("node 'other' (FIFOQueue) is of 5 elements (float32[2])"),
                    HasSubstr("the queue 'jobs' on /job:ps/task:0"), HasSubstr("of 4 elements")));
  put(*queue);
  queue = nullptr;
  EXPECT_THAT(errorText([&] { store.use(kJobs, kMore, "other"); }), HasSubstr("of 4 elements"));
  store.reset("");
  queue = store.use(kJobs, kMore, "other");
  queue->close(false);
  queue = nullptr;
  EXPECT_THAT(errorText([&] { store.use(kJobs, kNumbers, "third"); }), HasSubstr("of 5 elements"))
      << "it is closed";
  store.reset("");
  store.use(kJobs, kNumbers, "third");
}

TEST(QueueStore, OutlivesItsUsersAndIsResetByContainer) {
  QueueStore store;
  const ResourceKey mine{kJobs.device, "mine", "jobs"};
  for (const ResourceKey& key : {kJobs, mine}) put(*store.use(key, kNumbers, "jobs"));
  store.reset("mine");
  EXPECT_EQ(store.use(kJobs, kNumbers, "jobs")->size(), 1u);
  EXPECT_EQ(store.use(mine, kNumbers, "jobs")->size(), 0u);
}

TEST(QueueStore, SaysWhatItHolds) {
  QueueStore store;
  const auto queue = store.use(kJobs, kNumbers, "jobs");
  put(*queue);
  put(*queue);
  const QueueStore::Load load = store.load();
  EXPECT_EQ(load.queues, 1u);
  EXPECT_EQ(load.elements, 2u);
  EXPECT_EQ(load.bytes, 2 * (FifoQueue::kComponentBytes + 2 * sizeof(float)));
}

TEST(QueueStore, IsBoundedByTheirNumberAndTheirBytes) {
  QueueStore store(2, FifoQueue::kComponentBytes + 2 * sizeof(float));
  const auto first = store.use({"d", "", "1"}, kNumbers, "1");
  store.use({"d", "", "2"}, kNumbers, "2");
  const auto third = store.use({"d", "", "3"}, kNumbers, "3");  // nobody uses the second
  EXPECT_THAT(errorText([&] {
                store.use({"d", "", "4"}, kNumbers, "4");
              }),
              HasSubstr("node '4' (FIFOQueue) is one more than the 2 queues"));
  put(*first);
  EXPECT_THAT(errorText([&] { put(*third); }), HasSubstr("an element of the queue '3'"));
}

}  // namespace
}  // namespace dtf::engine
