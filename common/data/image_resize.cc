#include "common/data/image_resize.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/base/check.h"

namespace dtf::data {

namespace {

using Resize = cluster::ImagesSpec::Resize;

// Weights are whole numbers of 2^-22: with pixels of 8 bits, sums fit 32.
constexpr int kWeightBits = 22;
constexpr int32_t kRounding = 1 << (kWeightBits - 1);

// The pixels of the image that make up one pixel of the result, along one axis.
struct Taps {
  int64_t first = 0;
  std::vector<int32_t> weights;
};

std::vector<Taps> tapsOf(int64_t from, int64_t to) {
  DTF_CHECK(from > 0 && to > 0);
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double support = std::max(scale, 1.0);  // half of the triangle's base
  std::vector<Taps> all;
  std::vector<double> weights;
  for (int64_t i = 0; i < to; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    Taps taps;
    taps.first = std::max<int64_t>(0, std::llround(centre - support));
    const int64_t last = std::min<int64_t>(from, std::llround(centre + support));
    double sum = 0;
    weights.clear();
    for (int64_t pixel = taps.first; pixel < last; ++pixel) {
      const double distance = (static_cast<double>(pixel) - centre + 0.5) * (1.0 / support);
      weights.push_back(std::max(0.0, 1.0 - std::abs(distance)));
      sum += weights.back();
    }
    DTF_CHECK(sum > 0 && taps.first + static_cast<int64_t>(weights.size()) <= from);
    for (const double weight : weights)
      taps.weights.push_back(static_cast<int32_t>(std::lround(weight / sum * (1 << kWeightBits))));
    all.push_back(std::move(taps));
  }
  return all;
}

// The part of the image to read.
struct Window {
  int64_t top = 0, left = 0, height = 0, width = 0;
};

Window windowOf(const Image& image, Resize how, int64_t height, int64_t width) {
  Window window{0, 0, image.height, image.width};
  if (how == Resize::kStretch) return window;
  // The largest window of these proportions.
  if (image.width * height > image.height * width)
    window.width = std::max<int64_t>(1, (image.height * width + height / 2) / height);
  else
    window.height = std::max<int64_t>(1, (image.width * height + width / 2) / width);
  window.top = (image.height - window.height) / 2;
  window.left = (image.width - window.width) / 2;
  DTF_CHECK(window.top >= 0 && window.left >= 0);
  return window;
}

uint8_t rounded(int32_t sum) {
  return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
}

// Returns one channel of a pixel from the pixels of a row.
uint8_t acrossOf(const uint8_t* from, int64_t channels, const Taps& taps) {
  int32_t sum = kRounding;
  for (const int32_t weight : taps.weights) {
    sum += weight * *from;
    from += channels;
  }
  return rounded(sum);
}

// Writes a row from the rows that begin at `from`. `sums` is scratch space.
void downTo(uint8_t* to, const uint8_t* from, const Taps& taps, std::vector<int32_t>& sums) {
  std::fill(sums.begin(), sums.end(), kRounding);
  for (const int32_t weight : taps.weights) {
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += weight * from[i];
    from += sums.size();
  }
  std::transform(sums.begin(), sums.end(), to, rounded);
}

}  // namespace

void resizeImage(const Image& image, Resize how, int64_t height, int64_t width,
                 std::span<uint8_t> to) {
  DTF_CHECK(image.height > 0 && image.width > 0 && height > 0 && width > 0);
  const int64_t channels = image.channels;
  DTF_CHECK(to.size() == static_cast<size_t>(height * width * channels));
  if (image.height == height && image.width == width) {
    std::copy_n(image.pixels.data(), to.size(), to.data());
    return;
  }
  const Window window = windowOf(image, how, height, width);
  const std::vector<Taps> across = tapsOf(window.width, width);
  const std::vector<Taps> down = tapsOf(window.height, height);
  std::vector<uint8_t> narrow(static_cast<size_t>(window.height * width * channels));
  uint8_t* next = narrow.data();
  for (int64_t row = 0; row < window.height; ++row) {
    const uint8_t* const from =
        image.pixels.data() + ((window.top + row) * image.width + window.left) * channels;
    for (const Taps& taps : across)
      for (int64_t channel = 0; channel < channels; ++channel)
        *next++ = acrossOf(from + taps.first * channels + channel, channels, taps);
  }
  next = to.data();
  const int64_t row_bytes = width * channels;
  std::vector<int32_t> sums(static_cast<size_t>(row_bytes));
  for (const Taps& taps : down) {
    downTo(next, narrow.data() + taps.first * row_bytes, taps, sums);
    next += row_bytes;
  }
}

}  // namespace dtf::data
