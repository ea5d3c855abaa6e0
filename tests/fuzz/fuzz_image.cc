// PNG, JPEG, WebP and BMP files. An accepted image has the pixels that its size promises, in either
// number of channels, and can be resized.

#include <vector>

#include "common/data/image_decoder.h"
#include "common/data/image_resize.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/heap_bound.h"

namespace {

constexpr int64_t kPixelsMax = 1 << 16;

bool decodes(std::span<const uint8_t> bytes, int64_t channels) {
  using namespace dtf::data;
  return dtf::fuzz::accepts([&] {
    const Image image = decodeImage(bytes, "fuzz", channels, kPixelsMax);
    FUZZ_CHECK(image.channels == channels && image.height > 0 && image.width > 0);
    FUZZ_CHECK(image.height * image.width <= kPixelsMax);
    FUZZ_CHECK(image.pixels.size() == static_cast<size_t>(image.height * image.width * channels));
    std::vector<uint8_t> other(static_cast<size_t>(5 * 9 * channels));
    resizeImage(image, dtf::cluster::ImagesSpec::Resize::kStretch, 5, 9, other);
    resizeImage(image, dtf::cluster::ImagesSpec::Resize::kCrop, 9, 5, other);
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const dtf::fuzz::HeapBound bound(size);
  const bool grey = decodes({data, size}, 1);
  FUZZ_CHECK(grey == decodes({data, size}, 3));
  return 0;
}
