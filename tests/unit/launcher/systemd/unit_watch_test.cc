#include "launcher/systemd/unit_watch.h"

#include <gmock/gmock.h>

#include "common/base/error.h"

namespace dtf::launcher {
namespace {

using ::testing::HasSubstr;

// A systemctl with replies that a test sets.
class UnitWatchTest : public ::testing::Test {
 protected:
  std::vector<UnitState> answer() {
    if (fails_with_) throw Error(*fails_with_, "Failed to connect to bus");
    return std::vector<UnitState>(2);
  }

  std::optional<ErrorCode> fails_with_;
  ManualClock clock_;
  UnitWatch watch_{"mnist", [this] { return answer(); }, clock_};
};

TEST_F(UnitWatchTest, AMissingAnswerIsAskedForAgain) {
  EXPECT_EQ(watch_.look()->size(), 2u);
  for (const ErrorCode code : {ErrorCode::kUnavailable, ErrorCode::kDeadline}) {
    fails_with_ = code;
    EXPECT_EQ(watch_.look(), std::nullopt);
    EXPECT_EQ(watch_.silence(), "Failed to connect to bus");
    clock_.advance(UnitWatch::kSilentMax - Duration(1));
    EXPECT_EQ(watch_.look(), std::nullopt);
    fails_with_.reset();
    EXPECT_TRUE(watch_.look().has_value());
    EXPECT_EQ(watch_.silence(), "");
  }
}

TEST_F(UnitWatchTest, ASystemdThatStaysSilentIsGivenUpByName) {
  fails_with_ = ErrorCode::kUnavailable;
  EXPECT_EQ(watch_.look(), std::nullopt);
  clock_.advance(UnitWatch::kSilentMax);
  try {
    watch_.look();
    ADD_FAILURE() << "must throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.message(), HasSubstr("for 60 s systemd has not reported the state of the "
                                           "units dtf-mnist@*: Failed to connect to bus"));
    EXPECT_THAT(error.message(), HasSubstr("dtf-launch attach"));
  }
}

TEST_F(UnitWatchTest, AnotherMistakeIsSaidAtOnce) {
  fails_with_ = ErrorCode::kBadData;
  EXPECT_THROW(watch_.look(), Error);
}

}  // namespace
}  // namespace dtf::launcher
