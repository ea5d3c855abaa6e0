#pragma once

// Tables that dtf draws itself, so that regression, two classes, several tags at once and many
// classes can be tried without a file, against figures that are known beforehand:
//
//   friedman  10 features in [0, 1), one number: 10 sin(pi x0 x1) + 20 (x2 - 0.5)^2 + 10 x3 + 5 x4
//             + e (Friedman, "Multivariate adaptive regression splines", 1991), e of variance 1: no
//             model has a mean squared error below 1; the number itself has a variance of about
//             24.8
//   linear    10 features in [-1, 1), class 1 where w x + e > 0: no model is right more often than
//             the rule w x > 0, about 0.89 of the time
//   tags      the same features, 4 tags of 0 or 1, each by a rule of its own
//   centres   16 features: a point drawn for each of the `classes`, plus a little noise
//   clicks    4 features, a user and an item, which are categories (clicks.h)
//
// Example i is a pure function of (seed, stream, i), the same to the bit on every machine: nothing
// of libm.

#include <array>
#include <cstdint>
#include <span>

#include "common/cluster/data_spec.h"
#include "common/data/dataset.h"

namespace dtf {
class Random;
}

namespace dtf::data {

inline constexpr const char* kSyntheticName = "the drawn examples";  // in messages
inline constexpr int64_t kTableFeatures = 10;
inline constexpr int64_t kCentreFeatures = 16;
inline constexpr int64_t kTags = 4;

// The parts of the examples, without drawing any.
PartSpec syntheticFeatures(cluster::Problem problem);
PartSpec syntheticLabels(cluster::Problem problem);

// Returns the rule of one tag, or of `linear` with tag 0: the weights of the features.
std::array<float, kTableFeatures> linearRule(uint64_t seed, int64_t tag);

// Draws a number of variance 1: the sum of 12 uniform ones, which needs no logarithm.
double bellOfTwelve(Random& random);

// `classes` is for kCentres. Training and evaluation never draw the same numbers.
// Errors: kBadConfig for a count that is not positive.
Dataset drawSynthetic(cluster::Problem problem, int64_t classes, uint64_t seed, bool eval,
                      int64_t count);

}  // namespace dtf::data
