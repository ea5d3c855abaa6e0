#include <cstdio>
// jpeglib.h uses FILE without including <cstdio>.
#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <array>
#include <csetjmp>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/data/image_codecs.h"

namespace dtf::data {

namespace {

// A progressive image has about 10 scans. A scan of a few bytes costs a pass over the whole image,
// so a large image may have fewer.
constexpr int kJpegScansMax = 100;
constexpr uint64_t kScannedPixelsMax = uint64_t{1} << 30;
constexpr long kJpegBytesMax = 256L
                               << 20;  // that libjpeg allocates: a progressive image is held whole
// A block of 8 x 8 pixels takes at least a bit.
constexpr uint64_t kPixelsPerByteMax = 8 * 64;
constexpr int64_t kInks = 4;

// One JPEG file in memory.
// Owns: libjpeg's state.  Borrows: the bytes and the name.
// Threads: thread-compatible.
// Errors: kBadData, kUnavailable. libjpeg reports them by longjmp, which must not skip a
// destructor: its callbacks, and the calls in guarded(), have none.
class JpegReader {
 public:
  JpegReader(std::span<const uint8_t> bytes, const std::string& name) : bytes_(bytes), name_(name) {
    state_.err = jpeg_std_error(&errors_);
    errors_.error_exit = onError;
    errors_.output_message = [](j_common_ptr) {};
    state_.client_data = this;
    guarded([this] { jpeg_create_decompress(&state_); });
    state_.mem->max_memory_to_use = kJpegBytesMax;
    progress_.progress_monitor = onProgress;
    state_.progress = &progress_;
  }
  ~JpegReader() { jpeg_destroy_decompress(&state_); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  Image read(int64_t pixels_max) {
    guarded([this] { readHeader(); });
    if (state_.arith_code)
      failImage(name_,
                "a JPEG image that is coded arithmetically, which few programs read: save it anew");
    const uint64_t held = uint64_t{bytes_.size()} * kPixelsPerByteMax;
    checkImageSize(name_, state_.image_height, state_.image_width, pixels_max, held);
    guarded([this] { jpeg_start_decompress(&state_); });
    Image image;
    image.height = state_.output_height;
    image.width = state_.output_width;
    image.channels = state_.output_components;
    row_bytes_ = static_cast<size_t>(image.width * image.channels);
    image.pixels = ByteBlock(row_bytes_ * static_cast<size_t>(image.height));
    guarded([this, to = image.pixels.data()] { readRows(to); });
    return image.channels == kInks ? withoutInks(image) : std::move(image);
  }

 private:
  void readHeader() {
    jpeg_mem_src(&state_, bytes_.data(), bytes_.size());
    // libjpeg's own function would add an end marker where the file is cut off, and leave the rest
    // of the image grey.
    state_.src->fill_input_buffer = [](j_decompress_ptr state) -> boolean {
      ERREXIT(state, JERR_INPUT_EOF);
      return FALSE;
    };
    jpeg_read_header(&state_, TRUE);
    switch (state_.jpeg_color_space) {
      case JCS_GRAYSCALE:
        state_.out_color_space = JCS_GRAYSCALE;
        break;
      case JCS_CMYK:
      case JCS_YCCK:
        state_.out_color_space = JCS_CMYK;
        break;
      default:
        state_.out_color_space = JCS_RGB;
        break;
    }
  }

  void readRows(uint8_t* to) {
    while (state_.output_scanline < state_.output_height) {
      JSAMPROW row = to + state_.output_scanline * row_bytes_;
      jpeg_read_scanlines(&state_, &row, 1);
    }
  }

  // Adobe's inks are stored inverted: 255 is none.
  static Image withoutInks(const Image& image) {
    const int64_t pixels = image.height * image.width;
    Image colours{image.height, image.width, kInks - 1,
                  ByteBlock(static_cast<size_t>(pixels * (kInks - 1)))};
    const uint8_t* from = image.pixels.data();
    uint8_t* to = colours.pixels.data();
    for (int64_t pixel = 0; pixel < pixels; ++pixel, from += kInks)
      for (int64_t ink = 0; ink < kInks - 1; ++ink)
        *to++ = static_cast<uint8_t>((from[ink] * from[kInks - 1] + 127) / 255);
    return colours;
  }

  template <class Calls>
  void guarded(const Calls& calls) {
    if (setjmp(back_) != 0) fail();
    calls();
  }

  [[noreturn]] void fail() {
    jpeg_destroy_decompress(&state_);  // also when the constructor fails; harmless twice
    if (errors_.msg_code == JERR_OUT_OF_MEMORY)
      throw Error(ErrorCode::kUnavailable, name_ + ": this host has no memory left to decode it");
    if (errors_.msg_code == JERR_NO_BACKING_STORE)
      failImage(name_, "a JPEG image that takes more than " + std::to_string(kJpegBytesMax >> 20) +
                           " MiB to decode: save it smaller, or not progressive");
    failImage(name_, std::string("damaged JPEG image: ") + message_.data());
  }

  [[noreturn]] static void onError(j_common_ptr state) {
    auto* self = static_cast<JpegReader*>(state->client_data);
    state->err->format_message(state, self->message_.data());
    std::longjmp(self->back_, 1);
  }

  static void onProgress(j_common_ptr state) {
    const auto* image = reinterpret_cast<j_decompress_ptr>(state);
    const uint64_t pixels = uint64_t{image->image_height} * image->image_width;
    const auto scans = static_cast<uint64_t>(std::max(0, image->input_scan_number));
    if (scans <= kJpegScansMax && scans * pixels <= kScannedPixelsMax) return;
    auto* self = static_cast<JpegReader*>(state->client_data);
    std::snprintf(self->message_.data(), self->message_.size(), "it has too many scans (%d)",
                  image->input_scan_number);
    state->err->msg_code = 0;
    std::longjmp(self->back_, 1);
  }

  const std::span<const uint8_t> bytes_;
  const std::string& name_;
  size_t row_bytes_ = 0;
  std::array<char, JMSG_LENGTH_MAX> message_{};
  std::jmp_buf back_{};
  jpeg_error_mgr errors_{};
  jpeg_progress_mgr progress_{};
  jpeg_decompress_struct state_{};
};

}  // namespace

Image decodeJpeg(std::span<const uint8_t> bytes, const std::string& name, int64_t pixels_max) {
  return JpegReader(bytes, name).read(pixels_max);
}

}  // namespace dtf::data
