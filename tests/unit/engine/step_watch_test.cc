#include "common/engine/step_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <optional>

namespace dtf::engine {
namespace {

using ::testing::HasSubstr;

// A step that ends when it is aborted.
struct Step {
  std::promise<Error> aborted;
  std::future<Error> cause = aborted.get_future();
  AbortStep abort() {
    return [this](const Error& why) { aborted.set_value(why); };
  }
};

TEST(StepWatch, WhoIsLateIsEnded) {
  StepWatch watch;
  Step patient, hasty;
  const auto first = watch.watch(6, kDurationMax, patient.abort());
  const auto second = watch.watch(7, std::chrono::milliseconds(1), hasty.abort());
  const Error late = hasty.cause.get();
  EXPECT_EQ(late.code(), ErrorCode::kDeadline);
  EXPECT_EQ(late.message(), "step 7 has not ended within 0.001 s");
  EXPECT_EQ(patient.cause.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
}

TEST(StepWatch, AllThatRunAreAbortedAndNoOthers) {
  StepWatch watch;
  Step over, one, two;
  { const auto ended = watch.watch(1, kDurationMax, over.abort()); }
  const auto first = watch.watch(2, kDurationMax, one.abort());
  const auto second = watch.watch(3, kDurationMax, two.abort());
  watch.abortAll(Error(ErrorCode::kUnavailable, "enough"));
  EXPECT_EQ(one.cause.get().message(), "enough");
  EXPECT_EQ(two.cause.get().message(), "enough");
  Step later;
  const auto third = watch.watch(4, kDurationMax, later.abort());
  for (Step* const step : {&over, &later})
    EXPECT_EQ(step->cause.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
}

// A thousand steps, all in time, leave nothing behind that would be aborted after them.
TEST(StepWatch, WhoEndsInTimeIsForgotten) {
  std::optional<StepWatch> watch(std::in_place);
  for (uint64_t step = 1; step <= 1000; ++step) {
    const auto watched = watch->watch(step, std::chrono::hours(1),
                                      [](const Error& cause) { ADD_FAILURE() << cause.message(); });
  }
  watch->abortAll(Error(ErrorCode::kUnavailable, "enough"));
  watch.reset();
}

}  // namespace
}  // namespace dtf::engine
