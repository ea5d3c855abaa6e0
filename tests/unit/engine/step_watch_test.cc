#include "common/engine/step_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <optional>

namespace dtf::engine {
namespace {

constexpr Duration kLong = std::chrono::hours(1);

// A step that ends when it is aborted.
struct Step {
  std::promise<Error> aborted;
  std::future<Error> cause = aborted.get_future();
  void operator()(const Error& why) { aborted.set_value(why); }
};

TEST(StepWatch, WhoIsLateIsEnded) {
  StepWatch watch;
  Step patient, hasty;
  const StepWatch::Watched first(watch, 6, kLong, patient);
  const StepWatch::Watched second(watch, 7, std::chrono::milliseconds(1), hasty);
  const Error late = hasty.cause.get();
  EXPECT_EQ(late.code(), ErrorCode::kDeadline);
  EXPECT_EQ(late.message(), "step 7 has not ended within 0.001 s");
  EXPECT_EQ(patient.cause.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
}

TEST(StepWatch, AllThatRunAreAbortedAndNoOthers) {
  StepWatch watch;
  Step over, one, two;
  { const StepWatch::Watched ended(watch, 1, kLong, over); }
  const StepWatch::Watched first(watch, 2, kLong, one);
  const StepWatch::Watched second(watch, 3, kLong, two);
  watch.abortAll(Error(ErrorCode::kUnavailable, "enough"));
  EXPECT_EQ(one.cause.get().message(), "enough");
  EXPECT_EQ(two.cause.get().message(), "enough");
  Step later;
  const StepWatch::Watched third(watch, 4, kLong, later);
  for (Step* const step : {&over, &later})
    EXPECT_EQ(step->cause.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
}

// Steps that end in time are not aborted later.
TEST(StepWatch, WhoEndsInTimeIsForgotten) {
  std::optional<StepWatch> watch(std::in_place);
  for (uint64_t step = 1; step <= 1000; ++step) {
    const auto fail = [](const Error& cause) { ADD_FAILURE() << cause.message(); };
    const StepWatch::Watched watched(*watch, step, kLong, fail);
  }
  watch->abortAll(Error(ErrorCode::kUnavailable, "enough"));
  watch.reset();
}

}  // namespace
}  // namespace dtf::engine
