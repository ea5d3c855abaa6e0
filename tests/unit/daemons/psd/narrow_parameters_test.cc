#include "daemons/psd/narrow_parameters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "common/ps/narrow_gradient.h"

namespace dtf::psd {
namespace {

constexpr uint64_t kRounded = 6;
const ps::NarrowLayout kRoundedLayout(kRounded);

class NarrowParametersTest : public ::testing::Test {
 protected:
  std::shared_ptr<const ps::Snapshot> parameters(float value) {
    const std::shared_ptr<ps::Snapshot> made = pool_.acquire(0);
    std::fill_n(made->mutableData(), kRounded, value);
    return made;
  }
  static std::vector<float> widened(const Buffer& narrow) {
    std::vector<float> values(kRounded);
    kRoundedLayout.widen(narrow.data(), values.data());
    return values;
  }

  ps::SnapshotPool pool_{kRounded, 4};
  NarrowParameters narrow_;
};

TEST_F(NarrowParametersTest, AreRoundedOnceForAllWorkersThatAreAnsweredWithThem) {
  const auto first = parameters(257), second = parameters(3);
  const std::shared_ptr<const Buffer> sent = narrow_.of(first, kRoundedLayout);
  EXPECT_EQ(sent->bytes(), kRoundedLayout.bytes());
  EXPECT_EQ(widened(*sent), std::vector<float>(kRounded, 256));
  EXPECT_EQ(narrow_.of(first, kRoundedLayout), sent);
  EXPECT_EQ(widened(*narrow_.of(second, kRoundedLayout)), std::vector<float>(kRounded, 3));
  EXPECT_EQ(widened(*sent), std::vector<float>(kRounded, 256)) << "a message refers to it";
}

// A snapshot that has gone may have left its place to another.
TEST_F(NarrowParametersTest, OfASnapshotThatHasGoneNothingIsTaken) {
  for (float value = 1; value < 20; ++value)
    EXPECT_EQ(widened(*narrow_.of(parameters(value), kRoundedLayout))[5], value);
}

TEST_F(NarrowParametersTest, MemoryThatNoMessageRefersToIsUsedAgain) {
  const std::byte* const before = narrow_.of(parameters(1), kRoundedLayout)->data();
  EXPECT_EQ(narrow_.of(parameters(2), kRoundedLayout)->data(), before);
  std::vector<std::shared_ptr<const Buffer>> sent;
  for (float value = 0; value < 8; ++value)
    sent.push_back(narrow_.of(parameters(value), kRoundedLayout));
  for (size_t i = 0; i < sent.size(); ++i)
    EXPECT_EQ(widened(*sent[i])[0], static_cast<float>(i)) << "of as many as are being sent";
}

}  // namespace
}  // namespace dtf::psd
