#include "common/data/clicks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "common/cluster/data_spec.h"
#include "common/data/synthetic.h"

namespace dtf::data {
namespace {

constexpr int64_t kCount = 20'000;

TEST(Clicks, AreTheSameForASeedAndOthersForEachUse) {
  const auto same = [](const Dataset& a, const Dataset& b) {
    return std::ranges::equal(a.parts(), b.parts(), [](const Part& one, const Part& other) {
      return std::ranges::equal(one.bytes(), other.bytes());
    });
  };
  const Dataset drawn = drawClicks(1, false, 100);
  EXPECT_TRUE(same(drawn, drawClicks(1, false, 100)));
  EXPECT_TRUE(same(drawn, drawSynthetic(cluster::Problem::kClicks, 2, 1, false, 100)));
  EXPECT_FALSE(same(drawn, drawClicks(2, false, 100)));
  EXPECT_FALSE(same(drawn, drawClicks(1, true, 100)));
}

TEST(Clicks, UsersAndItemsArePopularAndWithinTheirNumbers) {
  const Dataset drawn = drawClicks(1, false, kCount);
  ASSERT_EQ(drawn.categories().size(), 2u);
  const int64_t all[] = {cluster::kClickItems, cluster::kClickUsers};
  for (size_t i = 0; i < 2; ++i) {
    const std::span<const int32_t> numbers = drawn.categories()[i].as<int32_t>();
    const auto [least, most] = std::ranges::minmax(numbers);
    EXPECT_TRUE(least == 0 && most < all[i]) << least << " " << most;
    const auto popular =
        std::ranges::count_if(numbers, [&](int32_t number) { return number < all[i] / 4; });
    EXPECT_NEAR(static_cast<double>(popular) / kCount, 0.5, 0.02) << "of a quarter";
  }
  EXPECT_EQ(drawn.categories()[0].spec().name, "item");
  EXPECT_EQ(drawn.categories()[1].spec().name, "user");
}

// The rule that knows all but the noise is right as often as documented.
TEST(Clicks, TheRuleIsRightAsOftenAsSaid) {
  const ClickRule rule(1);
  const Dataset drawn = drawClicks(1, true, kCount);
  const std::span<const int32_t> labels = drawn.labels().as<int32_t>();
  int right = 0, clicks = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    ClickRule::Numbers x{};
    std::copy_n(drawn.features().as<float>().data() + i * kClickFeatures, kClickFeatures,
                x.begin());
    const auto at = static_cast<size_t>(i);
    const double score = rule.score(drawn.categories()[1].as<int32_t>()[at],
                                    drawn.categories()[0].as<int32_t>()[at], x);
    right += (score > 0) == (labels[at] == 1);
    clicks += labels[at];
  }
  std::printf("the rule is right %.4f of the time; %.4f are clicks\n",
              static_cast<double>(right) / kCount, static_cast<double>(clicks) / kCount);
  EXPECT_NEAR(static_cast<double>(right) / kCount, 0.957, 0.005);
  EXPECT_NEAR(static_cast<double>(clicks) / kCount, 0.5, 0.05);
}

}  // namespace
}  // namespace dtf::data
