// tests/e2e/summaries_test.py tests that TensorBoard shows them.

#include "common/train/summaries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "tests/support/simulated_disk.h"
#include "tests/unit/summary/proto_reader.h"
#include "tests/unit/train/job.h"
#include "tests/unit/train/wrapped_client.h"

namespace dtf::train {
namespace {

using dtf::testing::SimulatedDisk;
using summary::fieldsOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

// Fields of tensorflow.Event, Summary and Summary.Value.
constexpr uint32_t kStep = 2, kGraph = 4, kSummary = 5, kSession = 7, kValue = 1, kTag = 1;

class SummariesTest : public ::testing::Test {
 protected:
  SummariesTest() {
    train_.summaries.emplace();
    train_.summaries->every_seconds = 0;
    train_.summaries->every_steps = 2;
    train_.model.accuracy = true;
  }
  // Returns the events of a training of so many steps.
  std::vector<std::string> eventsOf(uint64_t steps) {
    train_.steps = steps;
    const runtime::KernelTable kernels = cpuKernels();
    const SystemClock clock;
    runtime::CpuDevice device;
    exchange::LocalCluster cluster(1, 1, clock, std::chrono::seconds(20));
    WrappedClient client(cluster);
    TrainingLoop loop(train_, {0, 1, 1}, digits(data::DigitStream::kTrain, 200), client, kernels,
                      device, clock);
    loop.evaluateOn(digits(data::DigitStream::kEval, 50));
    loop.join();
    Summaries summaries(train_, loop, disk_, "/run/events", clock);
    loop.observe(&summaries);
    loop.run(nullptr);
    summaries.onCheckpoint(steps);
    loop.evaluate();
    loop.observe(nullptr);
    const summary::EventWriterStatus status = summaries.finish();
    EXPECT_EQ(status.dropped + status.failed, 0u) << status.degraded;
    return records(disk_.contents(disk_.files().at(0)));
  }
  static std::vector<std::string> records(std::string_view file) {
    std::vector<std::string> found;
    while (file.size() >= 16) {
      uint64_t length = 0;
      std::memcpy(&length, file.data(), sizeof length);
      found.emplace_back(file.substr(12, length));
      file.remove_prefix(16 + length);
    }
    return found;
  }
  // Returns the tags of the values that were written at `step`.
  static std::vector<std::string> tagsAt(const std::vector<std::string>& events, uint64_t step) {
    std::vector<std::string> tags;
    for (const std::string& event : events) {
      const auto steps = fieldsOf(event, kStep);
      if ((steps.empty() ? 0 : steps[0].integer) != step) continue;
      for (const auto& values : fieldsOf(event, kSummary))
        for (const auto& value : fieldsOf(values.bytes, kValue))
          tags.push_back(fieldsOf(value.bytes, kTag).at(0).bytes);
    }
    return tags;
  }
  static size_t eventsWith(const std::vector<std::string>& events, uint32_t field) {
    return static_cast<size_t>(std::ranges::count_if(
        events, [field](const std::string& event) { return !fieldsOf(event, field).empty(); }));
  }

  SimulatedDisk disk_;
  cluster::TrainSpec train_ = softmaxJob(0);
};

TEST_F(SummariesTest, ScalarsAndHistogramsComeEverySoManySteps) {
  const std::vector<std::string> events = eventsOf(4);
  const std::vector<std::string> second = tagsAt(events, 2);
  for (const char* const tag :
       {"loss", "learning_rate", "accuracy", "softmax/weights", "softmax/weights/gradient"})
    EXPECT_THAT(second, Contains(tag));
  EXPECT_THAT(tagsAt(events, 1), ElementsAre());
  EXPECT_THAT(tagsAt(events, 3), ElementsAre());
  const std::vector<std::string> last = tagsAt(events, 4);
  EXPECT_THAT(last, Contains("loss"));
  EXPECT_THAT(last, Contains("eval/loss"));
  EXPECT_THAT(last, Contains("eval/accuracy"));
  for (const char* const tag : {"eval/macro/f1", "eval/weighted/precision", "eval/classes"})
    EXPECT_THAT(last, Contains(tag));
  EXPECT_THAT(last, Not(Contains("softmax/weights/gradient"))) << "no batch was computed there";
}

TEST_F(SummariesTest, TheFirstParametersHaveNoScalars) {
  const std::vector<std::string> first = tagsAt(eventsOf(2), 0);
  EXPECT_THAT(first, Contains("softmax/biases"));
  EXPECT_THAT(first, Not(Contains("loss")));
}

TEST_F(SummariesTest, AGraphAndASessionComeOnce) {
  const std::vector<std::string> events = eventsOf(2);
  EXPECT_EQ(eventsWith(events, kGraph), 1u);
  EXPECT_EQ(eventsWith(events, kSession), 3u) << "start, checkpoint, stop";
}

TEST_F(SummariesTest, WhatTheFileLeavesOutIsLeftOut) {
  train_.summaries->graph = false;
  train_.summaries->histograms = false;
  train_.model.accuracy = false;
  const std::vector<std::string> events = eventsOf(2);
  EXPECT_EQ(eventsWith(events, kGraph), 0u);
  EXPECT_THAT(tagsAt(events, 2), Not(Contains("softmax/weights")));
  EXPECT_THAT(tagsAt(events, 2), Not(Contains("accuracy")));
  EXPECT_THAT(tagsAt(events, 0), ElementsAre());
}

}  // namespace
}  // namespace dtf::train
