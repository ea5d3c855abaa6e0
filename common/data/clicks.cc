#include "common/data/clicks.h"

#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "common/base/random.h"
#include "common/base/random_streams.h"
#include "common/cluster/data_spec.h"
#include "common/data/synthetic.h"

namespace dtf::data {

namespace {

using Numbers = ClickRule::Numbers;

constexpr double kNoise = 0.2;  // of variance kNoise^2
// Streams after the rules of synthetic.h, which count from 0.
constexpr uint64_t kFirstUser = uint64_t{1} << 32;
constexpr uint64_t kFirstItem = uint64_t{2} << 32;
constexpr uint64_t kWeights = uint64_t{3} << 32;

Numbers drawNumbers(Random& random) {
  Numbers numbers{};
  for (float& number : numbers) number = random.uniform(-1, 1);
  return numbers;
}

Numbers ruleOf(uint64_t seed, uint64_t index) {
  Random random(seed, streamOf(RandomStream::kTableRules, index));
  return drawNumbers(random);
}

std::vector<Numbers> rulesFrom(uint64_t seed, uint64_t first, int64_t count) {
  std::vector<Numbers> rules;
  for (uint64_t i = 0; i < static_cast<uint64_t>(count); ++i)
    rules.push_back(ruleOf(seed, first + i));
  return rules;
}

double product(const Numbers& a, const Numbers& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * b[i];
  return sum;
}

// Draws low numbers more often.
int32_t drawPopular(Random& random, int64_t count) {
  const double drawn = random.uniform();
  return static_cast<int32_t>(drawn * drawn * static_cast<double>(count));
}

// Room for `count` examples of `spec`.
ByteBlock roomFor(const PartSpec& spec, int64_t count) {
  return ByteBlock(static_cast<size_t>(count) * spec.bytes());
}

}  // namespace

ClickRule::ClickRule(uint64_t seed)
    : users_(rulesFrom(seed, kFirstUser, cluster::kClickUsers)),
      items_(rulesFrom(seed, kFirstItem, cluster::kClickItems)),
      weights_(ruleOf(seed, kWeights)) {}

double ClickRule::score(int32_t user, int32_t item, const Numbers& x) const {
  return 2 * product(users_.at(static_cast<size_t>(user)), items_.at(static_cast<size_t>(item))) +
         product(weights_, x);
}

Dataset drawClicks(uint64_t seed, bool eval, int64_t count) {
  const ClickRule rule(seed);
  const PartSpec features = syntheticFeatures(cluster::Problem::kClicks);
  const PartSpec labels = syntheticLabels(cluster::Problem::kClicks);
  const PartSpec user{"user", DType::kInt32, Shape{1}}, item{"item", DType::kInt32, Shape{1}};
  ByteBlock drawn[] = {roomFor(features, count), roomFor(labels, count), roomFor(user, count),
                       roomFor(item, count)};
  for (int64_t i = 0; i < count; ++i) {
    const RandomStream use = eval ? RandomStream::kEvalTables : RandomStream::kTrainTables;
    Random random(seed, streamOf(use, static_cast<uint64_t>(i)));
    const int32_t who = drawPopular(random, cluster::kClickUsers);
    const int32_t what = drawPopular(random, cluster::kClickItems);
    const Numbers x = drawNumbers(random);
    const double score = rule.score(who, what, x) + kNoise * bellOfTwelve(random);
    const int32_t clicks = score > 0 ? 1 : 0;
    const auto put = [i](ByteBlock& block, const void* from, size_t bytes) {
      std::memcpy(block.data() + static_cast<size_t>(i) * bytes, from, bytes);
    };
    put(drawn[0], x.data(), sizeof x);
    put(drawn[1], &clicks, sizeof clicks);
    put(drawn[2], &who, sizeof who);
    put(drawn[3], &what, sizeof what);
  }
  std::vector<Part> categories;
  categories.emplace_back(item, kSyntheticName, std::move(drawn[3]));
  categories.emplace_back(user, kSyntheticName, std::move(drawn[2]));
  return {{features, kSyntheticName, std::move(drawn[0])},
          {labels, kSyntheticName, std::move(drawn[1])},
          std::move(categories)};
}

}  // namespace dtf::data
