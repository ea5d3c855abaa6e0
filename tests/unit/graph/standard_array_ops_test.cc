// Errors of ops on parts of tensors; builder_layers_test.cc tests their values.

#include "tests/unit/graph/op_fixture.h"

namespace dtf::graph {
namespace {

using testing::errorText;
using ::testing::HasSubstr;

class StandardArrayOps : public testing::OpTest {};

TEST_F(StandardArrayOps, RefuseInWords) {
  const auto text = [](auto f) { return errorText(f); };
  const Output x = open({4, 3});
  EXPECT_THAT(text([&] {
                b_.concat({x, open({4, 2, 1})}, 1);
              }),
              HasSubstr("must be the same but for dimension 1"));
  EXPECT_THAT(text([&] { b_.concat({x}, 2); }), HasSubstr("axis 2 is none of float32[4, 3]"));
  EXPECT_THAT(text([&] {
                b_.slice(x, {3, 0}, {2, 3});
              }),
              HasSubstr("dimension 0 of x float32[4, 3] has no 2 element(s) from 3 on"));
  EXPECT_THAT(text([&] {
                b_.pad(x, {1}, {1, 1});
              }),
              HasSubstr("before [1] must have a number for each of the 2 dimension(s)"));
}

TEST_F(StandardArrayOps, ATranspositionHasEachDimensionOnce) {
  const Output x = open({4, 2});
  EXPECT_EQ(shape(b_.transpose(x, {1, 0})), Shape({2, 4}));
  EXPECT_THAT(errorText([&] {
                b_.transpose(x, {1, 1});
              }),
              HasSubstr("permutation [1, 1] must have each dimension of x float32[4, 2] once"));
}

}  // namespace
}  // namespace dtf::graph
