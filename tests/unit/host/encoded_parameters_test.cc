#include "common/host/encoded_parameters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "common/arena/codecs/bfloat16.h"
#include "common/arena/codecs/float32.h"

namespace dtf::host {
namespace {

constexpr uint64_t kRounded = 6;
const arena::BFloat16Codec kRoundingCodec(kRounded);

class EncodedParametersTest : public ::testing::Test {
 protected:
  std::shared_ptr<const arena::ParameterVersion> parameters(float value) {
    const std::shared_ptr<arena::ParameterVersion> made = pool_.acquire(0);
    std::fill_n(made->mutableData(), kRounded, value);
    return made;
  }
  static std::vector<float> decoded(const wire::ArenaPart& part) {
    std::vector<float> values(kRounded);
    kRoundingCodec.decode(part.bytes, {}, values.data());
    return values;
  }

  arena::VersionPool pool_{kRounded, 4};
  EncodedParameters encoded_;
};

TEST_F(EncodedParametersTest, AreRoundedOnceForAllWorkersThatAreAnsweredWithThem) {
  const auto first = parameters(257), second = parameters(3);
  const wire::ArenaPart sent = encoded_.of(first, kRoundingCodec);
  EXPECT_EQ(sent.bytes.size(), kRoundingCodec.bytes());
  EXPECT_EQ(decoded(sent), std::vector<float>(kRounded, 256));
  EXPECT_EQ(encoded_.of(first, kRoundingCodec).owner, sent.owner);
  EXPECT_EQ(decoded(encoded_.of(second, kRoundingCodec)), std::vector<float>(kRounded, 3));
  EXPECT_EQ(decoded(sent), std::vector<float>(kRounded, 256)) << "a message refers to it";
}

// Another snapshot may lie at the address of one that was freed.
TEST_F(EncodedParametersTest, OfASnapshotThatHasGoneNothingIsTaken) {
  for (float value = 1; value < 20; ++value)
    EXPECT_EQ(decoded(encoded_.of(parameters(value), kRoundingCodec))[5], value);
}

TEST_F(EncodedParametersTest, MemoryThatNoMessageRefersToIsUsedAgain) {
  const std::byte* const before = encoded_.of(parameters(1), kRoundingCodec).bytes.data();
  EXPECT_EQ(encoded_.of(parameters(2), kRoundingCodec).bytes.data(), before);
  std::vector<wire::ArenaPart> sent;
  for (float value = 0; value < 8; ++value)
    sent.push_back(encoded_.of(parameters(value), kRoundingCodec));
  for (size_t i = 0; i < sent.size(); ++i)
    EXPECT_EQ(decoded(sent[i])[0], static_cast<float>(i)) << "of as many as are being sent";
}

TEST_F(EncodedParametersTest, AreSentFromWhereTheyAreIfTheCodecIsTheIdentity) {
  const auto first = parameters(257);
  const wire::ArenaPart sent = encoded_.of(first, arena::Float32Codec(4));
  EXPECT_EQ(sent.bytes.data(), reinterpret_cast<const std::byte*>(first->data()));
  EXPECT_EQ(sent.bytes.size(), 16u);
  EXPECT_EQ(sent.owner, first);
}

}  // namespace
}  // namespace dtf::host
