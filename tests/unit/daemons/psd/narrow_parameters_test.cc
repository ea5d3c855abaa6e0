#include "daemons/psd/narrow_parameters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "common/ps/narrow_gradient.h"

namespace dtf::psd {
namespace {

constexpr uint64_t kElements = 6;

class NarrowParametersTest : public ::testing::Test {
 protected:
  std::shared_ptr<const ps::Snapshot> parameters(float value) {
    const std::shared_ptr<ps::Snapshot> made = pool_.acquire(0);
    std::fill_n(made->mutableData(), kElements, value);
    return made;
  }
  static std::vector<float> widened(const Buffer& narrow) {
    std::vector<float> values(kElements);
    ps::widen(narrow.data(), kElements, values.data());
    return values;
  }

  ps::SnapshotPool pool_{kElements, 4};
  NarrowParameters narrow_;
};

TEST_F(NarrowParametersTest, AreRoundedOnceForAllWorkersThatAreAnsweredWithThem) {
  const auto first = parameters(257), second = parameters(3);
  const std::shared_ptr<const Buffer> sent = narrow_.of(first);
  EXPECT_EQ(sent->bytes(), ps::narrowBytes(kElements));
  EXPECT_EQ(widened(*sent), std::vector<float>(kElements, 256));
  EXPECT_EQ(narrow_.of(first), sent);
  EXPECT_EQ(widened(*narrow_.of(second)), std::vector<float>(kElements, 3));
  EXPECT_EQ(widened(*sent), std::vector<float>(kElements, 256)) << "a message refers to it";
}

// A snapshot that has gone may have left its place to another.
TEST_F(NarrowParametersTest, OfASnapshotThatHasGoneNothingIsTaken) {
  for (float value = 1; value < 20; ++value)
    EXPECT_EQ(widened(*narrow_.of(parameters(value)))[5], value);
}

TEST_F(NarrowParametersTest, MemoryThatNoMessageRefersToIsUsedAgain) {
  const std::byte* const before = narrow_.of(parameters(1))->data();
  EXPECT_EQ(narrow_.of(parameters(2))->data(), before);
  std::vector<std::shared_ptr<const Buffer>> sent;
  for (float value = 0; value < 8; ++value) sent.push_back(narrow_.of(parameters(value)));
  for (size_t i = 0; i < sent.size(); ++i)
    EXPECT_EQ(widened(*sent[i])[0], static_cast<float>(i)) << "of as many as are being sent";
}

}  // namespace
}  // namespace dtf::psd
