#include <dtf/tensor.h>
#include <gmock/gmock.h>

#include <thread>

#include "tests/unit/api/errors.h"

namespace dtf::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ApiTensor, HasItsTypeItsShapeAndZeros) {
  const Tensor tensor(DTF_INT64, {2, 3});
  EXPECT_EQ(tensor.dtype(), DTF_INT64);
  EXPECT_THAT(tensor.dims(), ElementsAre(2, 3));
  EXPECT_THAT(tensor.as<int64_t>(), ElementsAre(0, 0, 0, 0, 0, 0));
  const Tensor empty(DTF_UINT8, {0, 5});
  EXPECT_EQ(empty.as<uint8_t>().size(), 0u);
}

TEST(ApiTensor, HoldsValues) {
  const std::vector<float> values = {1, 2};
  const Tensor column = Tensor::of<float>({2, 1}, values);
  EXPECT_THAT(column.as<float>(), ElementsAre(1, 2));
  const Tensor same = column;
  EXPECT_EQ(same.as<float>().data(), column.as<float>().data()) << "a copy is the same tensor";
  const Tensor scalar = Tensor::scalar<int32_t>(7);
  EXPECT_TRUE(scalar.dims().empty());
  EXPECT_THAT(scalar.as<int32_t>(), ElementsAre(7));
}

TEST(ApiTensor, RefusesWhatItCannotBe) {
  EXPECT_THAT(refusal([] { Tensor(DTF_FLOAT32, {2, -1}); }), StartsWith("78: "));
  EXPECT_THAT(refusal([] { Tensor(static_cast<dtf_dtype>(9), {2}); }),
              AllOf(StartsWith("78: "), HasSubstr("9")));
  EXPECT_THAT(refusal([] { Tensor(DTF_FLOAT32, {1LL << 40, 1LL << 40}); }), StartsWith("78: "));
  EXPECT_THAT(refusal([] { Tensor(DTF_FLOAT32, {1LL << 62}); }), StartsWith("78: "))
      << "its bytes don't fit 64 bits";
  const Tensor column(DTF_FLOAT32, {2});
  EXPECT_THAT(refusal([&] { column.as<int32_t>(); }), StartsWith("2: "));
  const std::vector<float> one = {1};
  EXPECT_THAT(refusal([&] { Tensor::of<float>({2}, one); }), StartsWith("2: "));
}

TEST(ApiTensor, EachThreadHasItsOwnMessage) {
  EXPECT_NE(refusal([] { Tensor(DTF_FLOAT32, {-1}); }), "");
  const std::string ours = dtf_error_message();
  std::thread([] {
    EXPECT_STREQ(dtf_error_message(), "");
    EXPECT_NE(refusal([] { Tensor(static_cast<dtf_dtype>(9), {}); }), "");
  }).join();
  EXPECT_EQ(dtf_error_message(), ours);
}

}  // namespace
}  // namespace dtf::testing
