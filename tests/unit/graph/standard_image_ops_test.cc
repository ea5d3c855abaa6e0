// Ops on images: shapes, errors, and values worked out by hand.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "common/graph/window.h"
#include "tests/unit/graph/error_text.h"
#include "tests/unit/graph/reference_interpreter.h"

namespace dtf::graph {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::errorText;
using testing::evaluate;
using testing::Feeds;
using ::testing::HasSubstr;
using testing::Values;

class ImageOps : public ::testing::Test {
 protected:
  Output fed(Shape shape, Values values) {
    const Output input =
        b_.placeholder(graph_.uniqueName("fed"), DType::kFloat32, std::move(shape));
    feeds_[input] = std::move(values);
    return input;
  }
  Output image(Shape shape) {
    return b_.placeholder(graph_.uniqueName("x"), DType::kFloat32, std::move(shape));
  }
  Shape shapeOf(Output output) { return graph_.spec(output).shape; }
  Values value(Output output) { return evaluate(graph_, feeds_, output); }

  Graph graph_{standardOps()};
  Builder b_{graph_};
  Feeds feeds_;
};

TEST_F(ImageOps, ConvolutionsHaveTheShapesOfTheirWindows) {
  const Output x = image({8, 28, 27, 6});
  EXPECT_EQ(shapeOf(b_.conv2D(x, image({5, 3, 6, 32}))), Shape({8, 24, 25, 32}));
  const Window strided = paddedSame({{.size = 5, .stride = 2}, {.size = 3, .stride = 3}}, 28, 27);
  EXPECT_EQ(shapeOf(b_.conv2D(x, image({5, 3, 6, 32}), strided)), Shape({8, 14, 9, 32}));
  EXPECT_EQ(shapeOf(b_.conv2D(x, image({3, 3, 2, 9}), {}, 3)), Shape({8, 26, 25, 9}));
}

TEST_F(ImageOps, ComputeWhatIsWorkedOutByHand) {
  const Output x = fed({1, 3, 3, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  const Output f = fed({2, 2, 1, 1}, {1, 10, 100, 1000});
  EXPECT_THAT(value(b_.conv2D(x, f)), ElementsAre(5421, 6532, 8754, 9865));
  const auto pooled =
      b_.maxPool(x, {{.size = 2, .after = 1}, {.size = 2, .stride = 2, .after = 1}});
  EXPECT_THAT(value(pooled.y), ElementsAre(5, 6, 8, 9, 8, 9));
  EXPECT_THAT(value(pooled.argmax), ElementsAre(3, 2, 3, 2, 1, 0));
  const Output ones = fed({1, 1, 2, 1}, {1, 1});
  EXPECT_THAT(value(b_.maxPool(ones, {{}, {.size = 2}}).argmax), ElementsAre(0)) << "of equals";
  const Window around = {{.size = 3, .before = 1, .after = 1},
                         {.size = 3, .before = 1, .after = 1}};
  EXPECT_THAT(value(b_.avgPool(x, around)), ElementsAre(3, 3.5, 4, 4.5, 5, 5.5, 6, 6.5, 7));
  EXPECT_THAT(value(b_.globalAvgPool(x)), ElementsAre(5));
}

TEST_F(ImageOps, TheArgmaxIsAByteWhileItFits) {
  const Output x = image({1, 20, 20, 1});
  const auto type = [&](int64_t height, int64_t width) {
    return graph_.spec(b_.maxPool(x, {{.size = height}, {.size = width}}).argmax).dtype;
  };
  EXPECT_EQ(type(15, 17), DType::kUInt8);
  EXPECT_EQ(type(16, 16), DType::kInt32);
}

TEST_F(ImageOps, RefuseInWords) {
  const Output x = image({8, 28, 28, 6});
  const auto text = [&](auto f) { return errorText(f); };
  EXPECT_THAT(text([&] {
                b_.conv2D(image({8, 28, 28}), image({3, 3, 6, 4}));
              }),
              HasSubstr("x float32[8, 28, 28] must have 4 dimensions: batch, height"));
  EXPECT_THAT(text([&] {
                b_.conv2D(x, image({3, 6, 4}));
              }),
              HasSubstr("filter float32[3, 6, 4] must have 4 dimensions"));
  EXPECT_THAT(text([&] {
                b_.conv2D(x, image({3, 3, 5, 4}));
              }),
              AllOf(HasSubstr("float32[3, 3, 5, 4]"), HasSubstr("read 6 / 1 channels")));
  EXPECT_THAT(text([&] {
                b_.conv2D(x, image({3, 3, 2, 4}), {}, 3);
              }),
              HasSubstr("be a multiple of 3"));
  EXPECT_THAT(text([&] {
                b_.conv2D(x, image({3, 3, 6, 4}), {{.stride = 0}, {}});
              }),
              HasSubstr("stride_height must be from 1 to"));
  EXPECT_THAT(text([&] {
                b_.conv2D(x, image({3, 3, 6, 4}), {{}, {.before = -1}});
              }),
              HasSubstr("padding_left must be from 0 to"));
  EXPECT_THAT(text([&] {
                b_.conv2D(x, image({3, 5, 6, 4}), {{}, {.dilation = 7}});
              }),
              HasSubstr("width of 29 (dilated) is larger than the image's of 28 with its padding "
                        "of 0"));
  EXPECT_THAT(
      text([&] {
        b_.maxPool(x, {{.size = 2, .before = 2}, {}});
      }),
      HasSubstr("padding of a pooling must be smaller than its window: the window's height"));
  const int64_t most = 1 << 20;
  EXPECT_THAT(
      text([&] {
        b_.maxPool(x, {{.size = most, .before = most - 1}, {.size = most, .after = most - 1}});
      }),
      HasSubstr("the window of a pooling has 1099511627776 elements"));
  EXPECT_THAT(text([&] {
                b_.maxPool(image({1, 0, 1, 6}), {{.size = 2, .before = 1, .after = 1}, {}});
              }),
              HasSubstr("has no pixels to pool"));
  EXPECT_THAT(text([&] { b_.globalAvgPool(image({8, 6})); }), HasSubstr("must have 4 dimensions"));
  const Output dy = image({8, 26, 25, 4});
  EXPECT_THAT(text([&] {
                b_.conv2DBackpropFilter(x, {3, 3, 6, 4}, dy, {}, 1);
              }),
              HasSubstr("dy float32[8, 26, 25, 4] must be float32[8, 26, 26, 4]"));
  EXPECT_THAT(text([&] { b_.biasAdd(image({4}), image({4})); }),
              HasSubstr("at least 2 dimension(s)"));
  EXPECT_THAT(text([&] { b_.biasAdd(x, image({28})); }), HasSubstr("dimension 3 of x is 6"));
}

}  // namespace
}  // namespace dtf::graph
