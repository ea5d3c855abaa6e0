#include "common/train/kernel_choices.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/base/error.h"
#include "common/base/file.h"
#include "tests/support/temporary_files.h"
#include "tests/unit/runtime/convolution_runner.h"

namespace dtf::train {
namespace {

using cluster::KernelRule;
using runtime::Convolution;
using runtime::ConvolutionPass;
using Absent = KernelChoices::Absent;

// A layer with algorithms that round differently.
const Convolution kLayer = runtime::testing::squareConvolution(2, 6, 16, 3, 16);

std::string_view chosen(KernelChoices& choices, const Convolution& c = kLayer) {
  return choices.rule()(ConvolutionPass::kForward, c, bestIsa()).name;
}

class KernelChoicesTest : public ::testing::Test {
 protected:
  KernelChoices choices(Absent absent, bool winograd = true) {
    return {KernelRule::kTimed, run_dir_, absent, wait(Duration(0)), {}, winograd};
  }
  // A wait with simulated time: `on_sleep` is the work of others meanwhile.
  KernelWait wait(Duration patience, std::function<void()> on_sleep = nullptr) {
    const auto said = [this](const std::string& what, Duration waited) {
      said_.push_back(what + ", " + std::to_string(waited / std::chrono::milliseconds(1)));
    };
    const auto sleep = [this, on_sleep](Duration asleep) {
      EXPECT_GT(asleep, Duration(0));
      clock_.advance(asleep);
      if (on_sleep) on_sleep();
    };
    return {patience, said, &clock_, sleep};
  }
  void write(const std::string& way) {
    std::filesystem::create_directory(run_dir_);
    files_.write(
        "run/kernels.json",
        R"({"schema": 1, "convolutions": {"forward 6x6x16 3x3 s1x1 p1,1,1,1 d1x1 g1 -> 16": ")" +
            way + "\"}}");
  }
  ErrorCode errorOf(Absent absent, bool winograd = true) {
    try {
      KernelChoices all = choices(absent, winograd);
      chosen(all);
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("kernels.json"), std::string::npos) << error.what();
      return error.code();
    }
    return ErrorCode::kInternal;
  }

  testing::TemporaryFiles files_;
  const std::filesystem::path run_dir_ = "run";
  ManualClock clock_;
  std::vector<std::string> said_;
};

TEST_F(KernelChoicesTest, WhatTheChiefTimesHoldsForAll) {
  KernelChoices chief = choices(Absent::kTime);
  const std::string_view way = chosen(chief);
  EXPECT_TRUE(std::filesystem::exists(run_dir_ / kKernelsFile));
  for (const Absent absent : {Absent::kTime, Absent::kAwait, Absent::kTable}) {
    KernelChoices other = choices(absent);
    EXPECT_EQ(chosen(other), way);
    EXPECT_EQ(chosen(other, runtime::testing::squareConvolution(9, 6, 16, 3, 16)), way)
        << "with another number of images";
  }
}

TEST_F(KernelChoicesTest, WhatTheRunHasIsNotTimedAgain) {
  for (const std::string way : {"gathered", "winograd", "framed"}) {
    write(way);
    KernelChoices chief = choices(Absent::kTime);
    EXPECT_EQ(chosen(chief), way);
  }
}

TEST_F(KernelChoicesTest, OthersWaitUntilTheChiefHasChosen) {
  const TimePoint begin = clock_.now();
  int looks = 0;
  KernelChoices other(KernelRule::kTimed, run_dir_, Absent::kAwait,
                      wait(std::chrono::hours(1), [&] {
                        if (++looks == 100) write("framed");
                      }));
  EXPECT_EQ(chosen(other), "framed");
  EXPECT_EQ(looks, 100) << "it looks again as soon as it is awake";
  EXPECT_EQ(clock_.now() - begin, std::chrono::seconds(5)) << "every 50 ms";
  EXPECT_EQ(said_,
            std::vector<std::string>{"worker/0 to choose kernels in run/kernels.json, 3000"});
  EXPECT_EQ(chosen(other), "framed");
  EXPECT_EQ(looks, 100) << "it knows";
}

TEST_F(KernelChoicesTest, AllWaitsTogetherHaveOneDeadline) {
  EXPECT_EQ(errorOf(Absent::kAwait), ErrorCode::kDeadline) << "no patience at all";
  const TimePoint begin = clock_.now();
  KernelChoices other(KernelRule::kTimed, run_dir_, Absent::kAwait,
                      wait(std::chrono::milliseconds(120), [&] { write("framed"); }));
  EXPECT_EQ(chosen(other), "framed");
  EXPECT_EQ(clock_.now() - begin, std::chrono::milliseconds(50));
  try {
    chosen(other, runtime::testing::squareConvolution(2, 7, 16, 3, 16));
    ADD_FAILURE() << "nobody chooses for it";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDeadline);
    EXPECT_NE(std::string(error.what()).find("worker/0 has chosen no kernel for 'forward 7x7x16"),
              std::string::npos)
        << error.what();
  }
  EXPECT_EQ(clock_.now() - begin, std::chrono::milliseconds(120)) << "not a look later";
}

// `cache.json` holds a choice that timing would hardly give.
TEST_F(KernelChoicesTest, WhatThisMachineHasTimedBeforeIsNotTimedAgain) {
  const auto choose = [](const std::string& run, const std::string& cache, bool winograd = true) {
    KernelChoices chief(KernelRule::kTimed, run, Absent::kTime, {}, KernelCache(cache), winograd);
    return std::string(chosen(chief));
  };
  const std::string way = choose("first", "cache.json");
  std::string text = readFile("cache.json", KernelCache::kBytesMax);
  const std::string other = way == "gathered" ? "framed" : "gathered";
  const size_t machine = text.find(" threads, dtf ");
  ASSERT_NE(machine, std::string::npos) << text;
  // Another cache of the same machine, with another choice.
  const size_t begin = text.rfind('"', machine) + 1;
  const std::string name = text.substr(begin, text.find('"', machine) - begin);
  KernelCache("other.json").keep(name, "forward 6x6x16 3x3 s1x1 p1,1,1,1 d1x1 g1 -> 16", other);
  EXPECT_EQ(choose("second", "other.json"), other);
  EXPECT_EQ(choose("second", "cache.json"), other) << "the run's own file says more";
  KernelCache("bad.json").keep(name, "forward 6x6x16 3x3 s1x1 p1,1,1,1 d1x1 g1 -> 16", "quantum");
  EXPECT_NE(choose("third", "bad.json"), "quantum");
  KernelCache("fast.json").keep(name, "forward 6x6x16 3x3 s1x1 p1,1,1,1 d1x1 g1 -> 16", "winograd");
  EXPECT_NE(choose("fourth", "fast.json", false), "winograd") << "DTF_WINOGRAD=0";
}

TEST_F(KernelChoicesTest, WhoUsesATrainedModelGoesTheWayOfTheRun) {
  for (const std::string way : {"gathered", "winograd", "framed"}) {
    write(way);
    KernelChoices user = choices(Absent::kTable);
    EXPECT_EQ(chosen(user), way);
  }
}

TEST_F(KernelChoicesTest, WhoUsesATrainedModelTakesTheTableForWhatIsNotThere) {
  KernelChoices user = choices(Absent::kTable);
  EXPECT_EQ(chosen(user), runtime::fastestWay(ConvolutionPass::kForward, kLayer, true).name);
  EXPECT_FALSE(std::filesystem::exists(run_dir_));
}

TEST_F(KernelChoicesTest, AFileThatCantBeFollowedIsNamed) {
  write("quantum");
  EXPECT_EQ(errorOf(Absent::kTime), ErrorCode::kBadConfig);
  write("winograd");
  EXPECT_EQ(errorOf(Absent::kTime, false), ErrorCode::kBadConfig) << "DTF_WINOGRAD=0";
  for (const char* const damaged : {"", "{", "[]", R"({"schema": 2, "convolutions": {}})",
                                    R"({"schema": 1, "convolutions": {"a": 1}})"}) {
    files_.write("run/kernels.json", damaged);
    EXPECT_EQ(errorOf(Absent::kTime), ErrorCode::kBadData) << damaged;
  }
}

TEST_F(KernelChoicesTest, TheTableNeedsNoFile) {
  std::filesystem::create_directory(run_dir_);
  files_.write("run/kernels.json", "damaged");
  KernelChoices table(KernelRule::kTable, run_dir_, Absent::kTime);
  EXPECT_EQ(chosen(table), "winograd");
}

}  // namespace
}  // namespace dtf::train
