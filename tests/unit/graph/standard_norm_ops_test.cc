// Errors of normalisation; builder_layers_test.cc tests its values.

#include "tests/unit/graph/op_fixture.h"

namespace dtf::graph {
namespace {

using testing::errorText;
using ::testing::HasSubstr;

class StandardNormOps : public testing::OpTest {};

TEST_F(StandardNormOps, RefuseInWords) {
  const auto text = [](auto f) { return errorText(f); };
  const Output x = open({4, 3}), three = open({3}), four = open({4});
  EXPECT_THAT(text([&] { b_.batchNorm(x, four, three, 1e-3); }),
              HasSubstr("scale float32[4] must be float32[3]"));
  EXPECT_THAT(text([&] { b_.batchNorm(x, three, three, 0); }),
              HasSubstr("epsilon must be above 0"));
  EXPECT_THAT(text([&] { b_.batchNorm(three, three, three, 1e-3); }),
              HasSubstr("at least 2 dimension(s)"));
  EXPECT_THAT(text([&] {
                b_.layerNorm(open({0, 3}), three, three, 1e-3);
              }),
              HasSubstr("no elements to normalise"));
  EXPECT_THAT(text([&] { b_.layerNormGrad(x, x, three, three, four, 1e-3); }),
              HasSubstr("mean float32[3] must be float32[4]"));
}

}  // namespace
}  // namespace dtf::graph
