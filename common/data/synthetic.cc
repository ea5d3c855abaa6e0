#include "common/data/synthetic.h"

#include <fmt/core.h>

#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/random.h"
#include "common/base/random_streams.h"
#include "common/data/clicks.h"

namespace dtf::data {

namespace {

using cluster::Problem;

constexpr double kPi = 3.14159265358979323846;
constexpr double kRuleNoise = 0.2;    // of a linear rule, for each unit of its weights' length
constexpr double kCentreNoise = 0.1;  // of each feature; the centres are in [-1, 1)

// sin(x) for x in [0, pi], within 1e-12: the cosine's series at x - pi/2.
double sineOfHalfTurn(double x) {
  DTF_CHECK(x >= 0 && x <= kPi);
  const double t = x - kPi / 2;
  double term = 1;
  double sum = 1;
  for (int i = 2; i <= 20; i += 2) {
    term *= -t * t / ((i - 1) * i);
    sum += term;
  }
  return sum;
}

void drawUniform(Random& random, float low, float high, std::span<float> features) {
  for (float& feature : features) feature = random.uniform(low, high);
}

float friedman(Random& random, std::span<float> x) {
  drawUniform(random, 0, 1, x);
  const double product = double{x[0]} * x[1];
  const double middle = double{x[2]} - 0.5;
  const double value = 10 * sineOfHalfTurn(kPi * product) + 20 * middle * middle + 10 * x[3] +
                       5 * x[4] + bellOfTwelve(random);
  return static_cast<float>(value);
}

bool isAbove(const std::array<float, kTableFeatures>& rule, std::span<const float> x,
             Random& random) {
  double sum = 0;
  double square = 0;
  for (size_t i = 0; i < rule.size(); ++i) {
    sum += double{rule[i]} * x[i];
    square += double{rule[i]} * rule[i];
  }
  return sum + kRuleNoise * std::sqrt(square) * bellOfTwelve(random) > 0;
}

int32_t drawOfCentre(uint64_t seed, int64_t classes, Random& random, std::span<float> x) {
  const auto label = static_cast<int32_t>(random.below(static_cast<uint64_t>(classes)));
  Random centre(seed, streamOf(RandomStream::kTableRules, static_cast<uint64_t>(label)));
  drawUniform(centre, -1, 1, x);
  for (float& feature : x) feature += static_cast<float>(kCentreNoise * bellOfTwelve(random));
  return label;
}

}  // namespace

double bellOfTwelve(Random& random) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += random.uniform();
  return sum;
}

PartSpec syntheticFeatures(Problem problem) {
  const int64_t width = problem == Problem::kCentres  ? kCentreFeatures
                        : problem == Problem::kClicks ? kClickFeatures
                                                      : kTableFeatures;
  return {kFeatures, DType::kFloat32, Shape{width}};
}

PartSpec syntheticLabels(Problem problem) {
  switch (problem) {
    case Problem::kFriedman:
      return {kLabels, DType::kFloat32, Shape()};
    case Problem::kTags:
      return {kLabels, DType::kFloat32, Shape{kTags}};
    case Problem::kLinear:
    case Problem::kCentres:
    case Problem::kClicks:
      return {kLabels, DType::kInt32, Shape()};
  }
  DTF_CHECK_MSG(false, std::to_string(static_cast<int>(problem)));
}

std::array<float, kTableFeatures> linearRule(uint64_t seed, int64_t tag) {
  Random random(seed, streamOf(RandomStream::kTableRules, static_cast<uint64_t>(tag)));
  std::array<float, kTableFeatures> rule{};
  drawUniform(random, -1, 1, rule);
  return rule;
}

Dataset drawSynthetic(Problem problem, int64_t classes, uint64_t seed, bool eval, int64_t count) {
  DTF_CHECK(classes >= 2);
  if (count < 1)
    throw Error(ErrorCode::kBadConfig,
                fmt::format("cannot draw {} examples: draw at least 1", count));
  if (problem == Problem::kClicks) return drawClicks(seed, eval, count);
  const PartSpec features = syntheticFeatures(problem);
  const PartSpec labels = syntheticLabels(problem);
  ByteBlock feature_bytes(static_cast<size_t>(count) * features.bytes());
  ByteBlock label_bytes(static_cast<size_t>(count) * labels.bytes());
  std::vector<std::array<float, kTableFeatures>> rules;
  for (int64_t tag = 0; tag < kTags; ++tag) rules.push_back(linearRule(seed, tag));
  const auto width = static_cast<size_t>(features.shape.elements());
  for (int64_t i = 0; i < count; ++i) {
    const RandomStream use = eval ? RandomStream::kEvalTables : RandomStream::kTrainTables;
    Random random(seed, streamOf(use, static_cast<uint64_t>(i)));
    const std::span<float> x(reinterpret_cast<float*>(feature_bytes.data()) + width * i, width);
    uint8_t* const label = label_bytes.data() + labels.bytes() * i;
    std::array<float, kTags> numbers{};
    int32_t index = 0;
    switch (problem) {
      case Problem::kFriedman:
        numbers[0] = friedman(random, x);
        break;
      case Problem::kTags:
        drawUniform(random, -1, 1, x);
        for (size_t tag = 0; tag < numbers.size(); ++tag)
          numbers[tag] = isAbove(rules[tag], x, random) ? 1.0F : 0.0F;
        break;
      case Problem::kLinear:
        drawUniform(random, -1, 1, x);
        index = isAbove(rules[0], x, random) ? 1 : 0;
        break;
      case Problem::kCentres:
        index = drawOfCentre(seed, classes, random, x);
        break;
      case Problem::kClicks:
        DTF_CHECK_MSG(false, "they are drawn by themselves");
    }
    if (areClasses(labels))
      std::memcpy(label, &index, labels.bytes());
    else
      std::memcpy(label, numbers.data(), labels.bytes());
  }
  return {{features, kSyntheticName, std::move(feature_bytes)},
          {labels, kSyntheticName, std::move(label_bytes)}};
}

}  // namespace dtf::data
