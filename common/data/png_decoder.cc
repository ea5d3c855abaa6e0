#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <vector>

#include "common/base/check.h"
#include "common/data/image_codecs.h"

namespace dtf::data {

namespace {

// Deflate's best ratio (zlib's technical details): no PNG holds more bytes of rows for a byte of
// file.
constexpr uint64_t kPngDeflateRatioMax = 1032;
constexpr png_alloc_size_t kPngChunkBytesMax = 8 << 20;
constexpr png_uint_32 kPngChunksMax = 1000;  // that libpng keeps: texts, profiles

// One PNG file in memory.
// Owns: libpng's state.  Borrows: the bytes and the name.
// Threads: thread-compatible.
// Errors: kBadData. libpng reports them by longjmp, which must not skip a destructor: its
// callbacks, and the calls in guarded(), have none.
class PngReader {
 public:
  PngReader(std::span<const uint8_t> bytes, const std::string& name)
      : bytes_(bytes),
        name_(name),
        png_(png_create_read_struct(PNG_LIBPNG_VER_STRING, this, onError, onWarning)),
        info_(png_ == nullptr ? nullptr : png_create_info_struct(png_)) {
    DTF_CHECK_MSG(info_ != nullptr, "libpng is another than this was built with, or has no memory");
    png_set_read_fn(png_, this, onRead);
    // The pixels need IHDR, PLTE, tRNS and IDAT. libpng (1.6.39) would allocate the bytes that an
    // eXIf says it has, before it reads any, and no limit of the next two holds it.
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_set_chunk_malloc_max(png_, kPngChunkBytesMax);
    png_set_chunk_cache_max(png_, kPngChunksMax);
  }
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  Image read(int64_t pixels_max) {
    guarded([this] { png_read_info(png_, info_); });
    const auto bits = uint64_t{png_get_bit_depth(png_, info_)} * png_get_channels(png_, info_);
    DTF_CHECK(bits > 0);
    checkImageSize(name_, png_get_image_height(png_, info_), png_get_image_width(png_, info_),
                   pixels_max, bytes_.size() * kPngDeflateRatioMax * 8 / bits);
    guarded([this] { askForBytes(); });
    Image image;
    image.height = png_get_image_height(png_, info_);
    image.width = png_get_image_width(png_, info_);
    image.channels = png_get_channels(png_, info_);
    const size_t row_bytes = png_get_rowbytes(png_, info_);
    DTF_CHECK(row_bytes == static_cast<size_t>(image.width * image.channels));
    image.pixels = ByteBlock(row_bytes * static_cast<size_t>(image.height));
    std::vector<png_bytep> rows;
    for (int64_t row = 0; row < image.height; ++row)
      rows.push_back(image.pixels.data() + static_cast<size_t>(row) * row_bytes);
    guarded([this, &rows] { png_read_image(png_, rows.data()); });
    return image;
  }

 private:
  // Requests grey, or red, green and blue, 8 bits each.
  void askForBytes() {
    png_set_expand(png_);  // palettes, fewer than 8 bits, and transparent colours
    png_set_scale_16(png_);
    png_set_strip_alpha(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
  }

  template <class Calls>
  void guarded(const Calls& calls) {
    if (setjmp(png_jmpbuf(png_)) != 0) failImage(name_, message_.data());
    calls();
  }

  [[noreturn]] static void onError(png_structp png, png_const_charp message) {
    auto* self = static_cast<PngReader*>(png_get_error_ptr(png));
    std::snprintf(self->message_.data(), self->message_.size(), "damaged PNG image: %s", message);
    png_longjmp(png, 1);
  }
  static void onWarning(png_structp, png_const_charp) {}

  static void onRead(png_structp png, png_bytep to, size_t bytes) {
    auto* self = static_cast<PngReader*>(png_get_io_ptr(png));
    if (bytes > self->bytes_.size() - self->at_) png_error(png, "the file is cut off");
    std::memcpy(to, self->bytes_.data() + self->at_, bytes);
    self->at_ += bytes;
  }

  const std::span<const uint8_t> bytes_;
  size_t at_ = 0;
  const std::string& name_;
  std::array<char, 200> message_{};
  png_structp png_;
  png_infop info_;
};

}  // namespace

Image decodePng(std::span<const uint8_t> bytes, const std::string& name, int64_t pixels_max) {
  return PngReader(bytes, name).read(pixels_max);
}

}  // namespace dtf::data
