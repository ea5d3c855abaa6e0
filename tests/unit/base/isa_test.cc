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

TEST(Isa, IsNeverBetterThanTheEnvironmentAllows) {
  const char* const max = std::getenv("DTF_MAX_CPU_ISA");
  if (max == nullptr || *max == '\0') GTEST_SKIP() << "DTF_MAX_CPU_ISA is not set";
  EXPECT_EQ(isaName(bestIsa()), max) << "this CPU has no " << max;
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

}  // namespace
}  // namespace dtf
