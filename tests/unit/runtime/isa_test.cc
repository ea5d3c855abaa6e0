#include "common/runtime/isa.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace dtf::runtime {

TEST(Isa, EveryCpuRunsTheBaseline) {
  EXPECT_EQ(supportedIsas().front(), Isa::kBaseline);
  EXPECT_TRUE(std::is_sorted(supportedIsas().begin(), supportedIsas().end()));
}

TEST(Isa, TheBestIsTheLast) {
  EXPECT_EQ(bestIsa(), supportedIsas().back());
}

TEST(Isa, HasAName) {
  EXPECT_EQ(isaName(Isa::kV4), "x86-64-v4");
}

}  // namespace dtf::runtime
