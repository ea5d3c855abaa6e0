#include "common/data/digits.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/random.h"
#include "common/base/random_streams.h"
#include "common/base/thread.h"
#include "common/data/digit_canvas.h"
#include "common/data/digit_glyphs.h"

namespace dtf::data {

namespace {

constexpr int kCurveSteps = 5;  // straight pieces between two pen positions: about 1.5 pixels each
constexpr float kDigitHeight = 20;      // pixels, before scaling
constexpr float kPointSlip = 3.2F;      // of a pen position, in hundredths of the height
constexpr float kBend = 2.1F;           // of the smooth field, in pixels
constexpr float kHalfAngleTan = 0.16F;  // tan of half the largest turn: 18 degrees
constexpr float kShear = 0.3F;
constexpr float kShift = 1.9F;  // pixels

// Numbers are drawn one to a statement: the order in which a compiler evaluates operands must not
// matter.

// A bell-shaped number in (-1, 1): the mean of three uniform ones.
float bell(Random& random) {
  float sum = random.uniform(-1, 1);
  sum += random.uniform(-1, 1);
  sum += random.uniform(-1, 1);
  return sum * (1.0F / 3.0F);
}

Point within(Random& random, float x_max, float y_max) {
  const float x = random.uniform(-x_max, x_max);
  const float y = random.uniform(-y_max, y_max);
  return {x, y};
}

// A smooth random displacement of the plane: a uniform cubic B-spline over a coarse grid of random
// vectors, in the spirit of the elastic distortions of Simard, Steinkraus, Platt, "Best practices
// for convolutional neural networks", ICDAR 2003, but moving the pen, not the pixels: crisp, and 50
// vectors instead of 784.
class BendField {
 public:
  BendField(Random& random, float amplitude) {
    for (Point& p : grid_) p = within(random, amplitude, amplitude);
  }

  Point at(Point p) const {
    const Cell column = cellOf(p.x);
    const Cell row = cellOf(p.y);
    Point sum;
    for (size_t i = 0; i < 4; ++i) {
      for (size_t j = 0; j < 4; ++j) {
        const float weight = row.weights[i] * column.weights[j];
        const Point& g = grid_[(row.first + i) * kGrid + column.first + j];
        sum.x += weight * g.x;
        sum.y += weight * g.y;
      }
    }
    return sum;
  }

 private:
  static constexpr size_t kCells = 4;          // over the side of the image
  static constexpr size_t kGrid = kCells + 3;  // control vectors a cubic spline needs for them
  struct Cell {
    size_t first = 0;
    std::array<float, 4> weights{};
  };

  static Cell cellOf(float position) {
    constexpr auto kSpan = static_cast<float>(kCells);
    const float scaled = std::clamp(position * (kSpan / kDigitSide), 0.0F, kSpan - 0.001F);
    Cell cell;
    cell.first = static_cast<size_t>(scaled);
    const float t = scaled - static_cast<float>(cell.first);
    const float s = 1 - t;
    constexpr float kSixth = 1.0F / 6.0F;
    cell.weights = {s * s * s * kSixth, (3 * t * t * t - 6 * t * t + 4) * kSixth,
                    (3 * s * s * s - 6 * s * s + 4) * kSixth, t * t * t * kSixth};
    return cell;
  }

  std::array<Point, kGrid * kGrid> grid_;
};

// Turns, scales, shears and shifts glyph units into pixels.
class Hand {
 public:
  explicit Hand(Random& random) {
    // A rotation from the tangent of half its angle: no sine, so no libm.
    const float t = kHalfAngleTan * bell(random) * 1.5F;
    const float norm = 1.0F / (1.0F + t * t);
    const float cosine = (1.0F - t * t) * norm;
    const float sine = 2.0F * t * norm;
    const float unit = kDigitHeight / 100.0F;
    const float scale_x = unit * random.uniform(0.76F, 1.12F);
    const float scale_y = unit * random.uniform(0.85F, 1.1F);
    const float shear = kShear * bell(random) * 1.5F;
    xx_ = cosine * scale_x;
    xy_ = (cosine * -shear - sine) * scale_y;
    yx_ = sine * scale_x;
    yy_ = (cosine - sine * shear) * scale_y;
    x0_ = 0.5F * kDigitSide + kShift * random.uniform(-1, 1);
    y0_ = 0.5F * kDigitSide + kShift * random.uniform(-1, 1);
  }

  Point place(Point glyph) const {
    const float x = glyph.x - 50.0F;
    const float y = glyph.y - 50.0F;
    return {x0_ + xx_ * x + xy_ * y, y0_ + yx_ * x + yy_ * y};
  }

 private:
  float xx_, xy_, yx_, yy_, x0_, y0_;
};

struct PenStyle {
  float radius_first;  // at the first point of the digit, in pixels
  float radius_last;   // at the last
  float softness;
  float level;
};

PenStyle choosePen(Random& random) {
  PenStyle pen{};
  pen.radius_first = random.uniform(0.65F, 1.75F);
  pen.radius_last = pen.radius_first * random.uniform(0.8F, 1.25F);
  pen.softness = random.uniform(0.8F, 1.6F);
  pen.level = random.uniform(150, 255);
  return pen;
}

// Catmull and Rom, "A class of local interpolating splines" (1974), between b and c.
Point curveAt(Point a, Point b, Point c, Point d, float t) {
  const float t2 = t * t;
  const float t3 = t2 * t;
  const float wa = -0.5F * t3 + t2 - 0.5F * t;
  const float wb = 1.5F * t3 - 2.5F * t2 + 1.0F;
  const float wc = -1.5F * t3 + 2.0F * t2 + 0.5F * t;
  const float wd = 0.5F * t3 - 0.5F * t2;
  return {wa * a.x + wb * b.x + wc * c.x + wd * d.x, wa * a.y + wb * b.y + wc * c.y + wd * d.y};
}

constexpr size_t kPointsMax = 24;  // of one glyph

void drawGlyph(Random& random, Glyph glyph, DigitCanvas& canvas) {
  const Hand hand(random);
  const BendField bend(random, kBend);
  const PenStyle pen = choosePen(random);
  std::array<Point, kPointsMax> points;
  DTF_CHECK(glyph.size() > 1 && glyph.size() <= kPointsMax);
  for (size_t i = 0; i < glyph.size(); ++i) {
    const Point slip = within(random, kPointSlip, kPointSlip);
    const Point slipped = {static_cast<float>(glyph[i].x) + slip.x,
                           static_cast<float>(glyph[i].y) + slip.y};
    points[i] = hand.place(slipped);
  }
  const float widen =
      (pen.radius_last - pen.radius_first) / static_cast<float>(glyph.size() * kCurveSteps);
  for (size_t i = 0; i + 1 < glyph.size(); ++i) {
    if (glyph[i].pen == Pen::kLift) continue;
    const Point b = points[i];
    const Point c = points[i + 1];
    const Point a = i > 0 && glyph[i - 1].pen == Pen::kSmooth && glyph[i].pen == Pen::kSmooth
                        ? points[i - 1]
                        : b;
    const Point d = glyph[i + 1].pen == Pen::kSmooth ? points[i + 2] : c;
    const auto drawn = [&](Point p) {
      const Point by = bend.at(p);
      return Point{p.x + by.x, p.y + by.y};
    };
    Point from = drawn(b);
    for (int step = 1; step <= kCurveSteps; ++step) {
      const Point to = drawn(curveAt(a, b, c, d, static_cast<float>(step) / kCurveSteps));
      const float radius = pen.radius_first +
                           widen * static_cast<float>(i * kCurveSteps + static_cast<size_t>(step));
      canvas.line(from, to, radius, pen.softness, pen.level);
      from = to;
    }
  }
}

// Draws the clutter of scans: the end of a neighbour's stroke at the border, specks.
void drawClutter(Random& random, DigitCanvas& canvas) {
  constexpr uint64_t kOneImageIn = 4;
  if (random.below(kOneImageIn) == 0) {
    const float border = random.below(2) == 0 ? 0.5F : kDigitSide - 0.5F;
    const float x = border + random.uniform(-1.5F, 1.5F);
    const float y = random.uniform(2, kDigitSide - 2);
    const Point end = within(random, 2, 6);
    const float radius = random.uniform(0.5F, 1.2F);
    canvas.line({x, y}, {x + end.x, y + end.y}, radius, 1.0F, random.uniform(80, 220));
  }
  for (uint64_t specks = random.below(4); specks > 0; --specks) {
    const float x = random.uniform(0, kDigitSide);
    const float y = random.uniform(0, kDigitSide);
    const float radius = random.uniform(0.2F, 0.7F);
    canvas.line({x, y}, {x, y}, radius, 1.0F, random.uniform(40, 200));
  }
}

// One random byte a pixel, sixteen to a Philox block.
void fillNoise(uint64_t seed, uint64_t stream, std::span<uint8_t, kDigitPixels> noise) {
  constexpr uint32_t kNoiseHalf =
      0x80000000U;  // the upper half of the stream's positions: Random never gets there
  for (size_t i = 0; i < noise.size(); i += 16) {
    const std::array<uint32_t, 4> words =
        philox({static_cast<uint32_t>(i), kNoiseHalf, static_cast<uint32_t>(stream),
                static_cast<uint32_t>(stream >> 32)},
               {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
    for (size_t j = 0; j < 16; ++j)
      noise[i + j] = static_cast<uint8_t>(words[j / 4] >> (j % 4 * 8));
  }
}

}  // namespace

uint8_t drawDigit(uint64_t seed, DigitStream stream, uint64_t index,
                  std::span<uint8_t, kDigitPixels> pixels) {
  const uint64_t number = streamOf(
      stream == DigitStream::kTrain ? RandomStream::kTrainImages : RandomStream::kEvalImages,
      index);
  Random random(seed, number);
  const auto label = static_cast<uint8_t>(random.below(kDigitClasses));
  const std::span<const Glyph> variants = glyphsOf(label);
  DigitCanvas canvas;
  drawGlyph(random, variants[random.below(variants.size())], canvas);
  drawClutter(random, canvas);
  std::array<uint8_t, kDigitPixels> noise;
  fillNoise(seed, number, noise);
  constexpr uint64_t kNoiseMax = 40;  // grey levels
  canvas.finish(noise, static_cast<int>(random.below(kNoiseMax)), pixels);
  return label;
}

Dataset drawDigits(uint64_t seed, DigitStream stream, int64_t count, int threads) {
  if (count < 1 || count > kDigitsMax)
    throw Error(ErrorCode::kBadConfig,
                fmt::format("cannot draw {} digits: the embedded data set draws 1 to {}", count,
                            kDigitsMax));
  ByteBlock images(static_cast<size_t>(count) * kDigitPixels);
  ByteBlock labels(static_cast<size_t>(count));
  const auto draw = [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      uint8_t* const pixels = images.data() + i * kDigitPixels;
      labels.data()[i] = drawDigit(seed, stream, static_cast<uint64_t>(i),
                                   std::span<uint8_t, kDigitPixels>(pixels, kDigitPixels));
    }
  };
  constexpr int64_t kPerThreadMin = 256;  // fewer are drawn sooner than a thread starts
  const int64_t parts = std::clamp<int64_t>(count / kPerThreadMin, 1, std::max(threads, 1));
  {
    std::vector<Thread> helpers;
    for (int64_t part = 1; part < parts; ++part)
      helpers.emplace_back("draw-digits",
                           [=] { draw(count * part / parts, count * (part + 1) / parts); });
    draw(0, count / parts);
  }
  return {{{kFeatures, DType::kUInt8, Shape{kDigitSide, kDigitSide, 1}},
           kDigitsName,
           std::move(images)},
          {{kLabels, DType::kUInt8, Shape()}, kDigitsName, std::move(labels)}};
}

}  // namespace dtf::data
