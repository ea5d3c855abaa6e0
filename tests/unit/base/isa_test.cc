#include "common/base/isa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "common/base/error.h"

namespace dtf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Isa, EveryCpuRunsTheBaseline) {
  EXPECT_EQ(supportedIsas().front(), Isa::kBaseline);
  EXPECT_TRUE(std::is_sorted(supportedIsas().begin(), supportedIsas().end()));
}

TEST(Isa, TheBestIsTheLast) {
  EXPECT_EQ(bestIsa(), supportedIsas().back());
}

// In a process of its own, as the environment is read once.
TEST(IsaDeathTest, IsNeverBetterThanTheEnvironmentAllows) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto exitWithBest = [] {
    ::setenv("DTF_MAX_CPU_ISA", "baseline", 1);
    std::exit(bestIsa() == Isa::kBaseline ? 0 : 1);
  };
  EXPECT_EXIT(exitWithBest(), ::testing::ExitedWithCode(0), "");
}

TEST(Isa, ALimitKeepsWhatIsBelowIt) {
  const std::vector<Isa> all = {Isa::kBaseline, Isa::kV3, Isa::kV4};
  EXPECT_THAT(isasUpTo(all, "baseline"), ElementsAre(Isa::kBaseline));
  EXPECT_THAT(isasUpTo(all, "avx2"), ElementsAre(Isa::kBaseline, Isa::kV3));
  EXPECT_EQ(isasUpTo(all, "avx512"), all);
  EXPECT_EQ(isasUpTo(all, ""), all);
}

TEST(Isa, ALimitAboveWhatTheCpuHasChangesNothing) {
  const std::vector<Isa> old = {Isa::kBaseline};
  EXPECT_EQ(isasUpTo(old, "avx512"), old);
}

TEST(Isa, AnUnknownLimitIsAnErrorThatNamesTheKnownOnes) {
  try {
    isasUpTo(supportedIsas(), "sse9");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_THAT(error.message(), HasSubstr("'sse9'"));
    EXPECT_THAT(error.message(), HasSubstr("baseline, avx2 or avx512"));
  }
}

// In a process of its own, as above.
TEST(IsaDeathTest, MatrixTilesAreBeyondWhateverIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto exitWithTiles = [] {
    ::setenv("DTF_MAX_CPU_ISA", "avx512", 1);
    std::_Exit(hasMatrixTiles() ? 1 : 0);
  };
  EXPECT_EXIT(exitWithTiles(), ::testing::ExitedWithCode(0), "");
  EXPECT_FALSE(hasMatrixTiles() && bestIsa() != Isa::kV4);
}

}  // namespace
}  // namespace dtf
