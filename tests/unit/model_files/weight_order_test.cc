#include "common/model_files/weight_order.h"

#include <gtest/gtest.h>

#include <numeric>

namespace dtf::model_files {
namespace {

TEST(WeightOrder, FiltersComeFirstThenChannels) {
  const Shape filter{2, 3, 4, 5};
  EXPECT_EQ(channelsFirst(filter), (Shape{5, 4, 2, 3}));
  std::vector<float> values(120);
  std::iota(values.begin(), values.end(), 0.0F);
  const std::vector<float> turned = channelsFirst(filter, values);
  for (size_t h = 0; h < 2; ++h)
    for (size_t w = 0; w < 3; ++w)
      for (size_t c = 0; c < 4; ++c)
        for (size_t f = 0; f < 5; ++f)
          ASSERT_EQ(turned[((f * 4 + c) * 2 + h) * 3 + w], values[((h * 3 + w) * 4 + c) * 5 + f]);
  EXPECT_EQ(channelsLast(Shape{5, 4, 2, 3}), filter);
  EXPECT_EQ(channelsLast(Shape{5, 4, 2, 3}, turned), values) << "and back";
}

}  // namespace
}  // namespace dtf::model_files
