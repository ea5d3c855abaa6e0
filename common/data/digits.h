#pragma once

// The embedded data set: hand-written digits that dtf draws itself, so that a first job needs no
// download. Each class has several ways of writing it, as strokes of Bezier curves
// (digit_glyphs.h); an image is one of them, bent by a smooth random field, turned, scaled, sheared
// and shifted, drawn with a pen of random width, with slips, specks and noise added. A softmax
// model stays near 92 % on it, a small CNN passes 99 %.
//
// Image i is a pure function of (seed, stream, i), the same to the bit on every machine: the pixel
// path uses only IEEE additions, multiplications, divisions and square roots, and nothing from
// libm.

#include <cstdint>
#include <span>

#include "common/data/dataset.h"

namespace dtf::data {

inline constexpr int kDigitSide = 28;  // pixels
inline constexpr int kDigitPixels = kDigitSide * kDigitSide;
inline constexpr int kDigitClasses = 10;
inline constexpr const char* kDigitsName = "the embedded digits";  // in messages
inline constexpr int64_t kDigitsMax = int64_t{1} << 22;            // 3.3 GB

// Training and evaluation never see the same image, whatever the seed.
enum class DigitStream : uint8_t { kTrain = 1, kEval = 2 };

// Draws image `index` into `pixels` (row-major, 0 background to 255 ink) and returns its class, 0
// to 9. About 15 us. Thread-safe.
uint8_t drawDigit(uint64_t seed, DigitStream stream, uint64_t index,
                  std::span<uint8_t, kDigitPixels> pixels);

// Draws `count` images, in at most `threads` threads (1: the caller alone).
// Errors: kBadConfig for a count outside [1, kDigitsMax].
Dataset drawDigits(uint64_t seed, DigitStream stream, int64_t count, int threads);

}  // namespace dtf::data
