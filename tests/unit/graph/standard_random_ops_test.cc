// Numbers drawn from seeds.

#include <cmath>
#include <set>

#include "tests/unit/graph/op_fixture.h"

namespace dtf::graph {
namespace {

using testing::errorText;
using ::testing::HasSubstr;
using testing::Values;

class StandardRandomOps : public testing::OpTest {};

TEST_F(StandardRandomOps, RandomNumbersFollowFromSeedAndStream) {
  constexpr int64_t kMany = 10'000;
  const auto drawn = [&](double step, int64_t stream, bool normal) {
    const Output seed = fed({2}, {7, step}, DType::kInt64);
    return value(normal ? b_.randomNormal(seed, {kMany}, stream)
                        : b_.randomUniform(seed, {kMany}, stream));
  };
  const Values uniform = drawn(1, 0, false);
  EXPECT_EQ(uniform, drawn(1, 0, false));
  EXPECT_NE(uniform, drawn(2, 0, false));
  EXPECT_NE(uniform, drawn(1, 1, false));
  EXPECT_GT(std::set<double>(uniform.begin(), uniform.end()).size(), size_t{kMany} - 50);
  const auto momentsOf = [](const Values& values) {
    double sum = 0, squares = 0;
    for (const double value : values) sum += value, squares += value * value;
    const auto n = static_cast<double>(values.size());
    return std::pair{sum / n, squares / n};
  };
  // Within five standard deviations of a fair draw.
  EXPECT_NEAR(momentsOf(uniform).first, 0.5, 5 * std::sqrt(1.0 / 12 / kMany));
  EXPECT_NEAR(momentsOf(drawn(1, 0, true)).first, 0, 5 / std::sqrt(kMany));
  EXPECT_NEAR(momentsOf(drawn(1, 0, true)).second, 1, 5 * std::sqrt(2.0 / kMany));
}

TEST_F(StandardRandomOps, RefuseInWords) {
  const auto text = [](auto f) { return errorText(f); };
  const Output four = fed({4}, Values(4));
  EXPECT_THAT(text([&] { b_.randomUniform(four, {2}); }), HasSubstr("must be int64[2]"));
  EXPECT_THAT(text([&] {
                b_.randomNormal(fed({2}, {1, 2}, DType::kInt64), {2}, -1);
              }),
              HasSubstr("stream must be from 0 to 16777215"));
}

}  // namespace
}  // namespace dtf::graph
