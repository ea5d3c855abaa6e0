#include "common/data/digits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>
#include <string>

namespace dtf::data {
namespace {

uint64_t fnv1a(std::span<const uint8_t> bytes, uint64_t hash = 14695981039346656037U) {
  for (const uint8_t byte : bytes) hash = (hash ^ byte) * 1099511628211U;
  return hash;
}

// A golden value: every compiler, machine and release draws these exact images. Otherwise saved
// results would lose their meaning.
TEST(Digits, DrawsTheSameImagesEverywhere) {
  const Dataset train = drawDigits(1, DigitStream::kTrain, 100, 1);
  EXPECT_EQ(fnv1a(train.labels().bytes(), fnv1a(train.features().bytes())), 12815198033487111809U);
  const Dataset eval = drawDigits(1, DigitStream::kEval, 100, 1);
  EXPECT_EQ(fnv1a(eval.labels().bytes(), fnv1a(eval.features().bytes())), 17222000153682918379U);
}

TEST(Digits, AnImageDependsOnItsNumberAlone) {
  const Dataset one_thread = drawDigits(3, DigitStream::kTrain, 1500, 1);
  const Dataset four_threads = drawDigits(3, DigitStream::kTrain, 1500, 4);
  EXPECT_TRUE(std::ranges::equal(one_thread.features().bytes(), four_threads.features().bytes()));
  EXPECT_TRUE(std::ranges::equal(one_thread.labels().bytes(), four_threads.labels().bytes()));
  std::array<uint8_t, kDigitPixels> pixels;
  EXPECT_EQ(drawDigit(3, DigitStream::kTrain, 1234, pixels), one_thread.labels().of(1234)[0]);
  EXPECT_TRUE(std::ranges::equal(pixels, one_thread.features().of(1234)));
}

TEST(Digits, SeedsAndStreamsDiffer) {
  std::set<uint64_t> seen;
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32}) {
    for (const DigitStream stream : {DigitStream::kTrain, DigitStream::kEval}) {
      const Dataset dataset = drawDigits(seed, stream, 50, 1);
      for (int64_t i = 0; i < dataset.size(); ++i) seen.insert(fnv1a(dataset.features().of(i)));
    }
  }
  EXPECT_EQ(seen.size(), 300u);
}

TEST(Digits, ClassesAreBalancedAndImagesHaveInkAndBackground) {
  const Dataset dataset = drawDigits(1, DigitStream::kTrain, 2000, 2);
  std::array<int, 10> count{};
  for (int64_t i = 0; i < dataset.size(); ++i) {
    ++count[dataset.labels().of(i)[0]];
    const auto image = dataset.features().of(i);
    const auto ink = std::ranges::count_if(image, [](uint8_t p) { return p > 100; });
    EXPECT_TRUE(ink >= 20 && ink < 350) << "image " << i << " has " << ink << " pixels of ink";
  }
  for (const int n : count) EXPECT_NEAR(n, 200, 60);
}

// A useful difficulty: nearest class mean, the simplest linear model, gets most digits right and
// many wrong.
TEST(Digits, AreNeitherTrivialNorHopelessForALinearModel) {
  const Dataset train = drawDigits(1, DigitStream::kTrain, 2000, 2);
  const Dataset eval = drawDigits(1, DigitStream::kEval, 1000, 2);
  std::array<std::array<double, kDigitPixels>, 10> mean{};
  std::array<int, 10> count{};
  for (int64_t i = 0; i < train.size(); ++i) {
    auto& m = mean[train.labels().of(i)[0]];
    for (size_t p = 0; p < m.size(); ++p) m[p] += train.features().of(i)[p];
    ++count[train.labels().of(i)[0]];
  }
  int right = 0;
  for (int64_t i = 0; i < eval.size(); ++i) {
    std::array<double, 10> distance{};
    for (size_t c = 0; c < 10; ++c)
      for (size_t p = 0; p < kDigitPixels; ++p)
        distance[c] += std::pow(mean[c][p] / count[c] - eval.features().of(i)[p], 2);
    right += std::ranges::min_element(distance) - distance.begin() == eval.labels().of(i)[0];
  }
  EXPECT_GT(right, 600);
  EXPECT_LT(right, 900);
}

}  // namespace
}  // namespace dtf::data
