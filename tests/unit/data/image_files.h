#pragma once

// Writes PNG and JPEG files of each kind, for tests.

#include <cstdio>
// jpeglib.h uses FILE without including its declaration.
#include <jpeglib.h>
#include <png.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace dtf::data {

// Returns bytes that are the same on every machine.
inline std::vector<uint8_t> noise(size_t bytes) {
  std::vector<uint8_t> all;
  for (uint32_t state = 1; all.size() < bytes;) {
    state = (state * 1103515245U + 12345U) & 0x7fffffffU;
    all.push_back(static_cast<uint8_t>(state >> 16));
  }
  return all;
}

struct PngKind {
  int colour = PNG_COLOR_TYPE_RGB;
  int bits = 8;
  bool interlaced = false;
  std::vector<png_color> palette = {};
};

// `rows` as in the file: 16 bits big-endian, fewer than 8 packed.
inline std::string pngOf(uint32_t width, uint32_t height, std::vector<uint8_t> rows,
                         const PngKind& kind = {}) {
  std::string file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &file,
      [](png_structp to, png_bytep bytes, size_t count) {
        static_cast<std::string*>(png_get_io_ptr(to))
            ->append(reinterpret_cast<const char*>(bytes), count);
      },
      nullptr);
  png_set_IHDR(png, info, width, height, kind.bits, kind.colour,
               kind.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (!kind.palette.empty())
    png_set_PLTE(png, info, kind.palette.data(), static_cast<int>(kind.palette.size()));
  const size_t row_bytes = png_get_rowbytes(png, info);
  if (rows.size() != row_bytes * height) std::abort();
  std::vector<png_bytep> pointers;
  for (uint32_t row = 0; row < height; ++row) pointers.push_back(rows.data() + row * row_bytes);
  png_set_rows(png, info, pointers.data());
  png_write_png(png, info, PNG_TRANSFORM_IDENTITY, nullptr);
  png_destroy_write_struct(&png, &info);
  return file;
}

// `channels`: 1 grey, 3 colours, 4 Adobe's inks in their stored form.
inline std::string jpegOf(uint32_t width, uint32_t height, int channels,
                          std::vector<uint8_t> pixels, bool progressive = false) {
  jpeg_compress_struct state{};
  jpeg_error_mgr errors{};
  state.err = jpeg_std_error(&errors);
  jpeg_create_compress(&state);
  uint8_t* bytes = nullptr;
  unsigned long size = 0;  // the type that libjpeg wants
  jpeg_mem_dest(&state, &bytes, &size);
  state.image_width = width;
  state.image_height = height;
  state.input_components = channels;
  state.in_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&state);
  jpeg_set_quality(&state, 100, TRUE);
  if (progressive) jpeg_simple_progression(&state);
  jpeg_start_compress(&state, TRUE);
  const size_t row_bytes = size_t{width} * static_cast<size_t>(channels);
  if (pixels.size() != row_bytes * height) std::abort();
  for (uint32_t row = 0; row < height; ++row) {
    JSAMPROW pointer = pixels.data() + row * row_bytes;
    jpeg_write_scanlines(&state, &pointer, 1);
  }
  jpeg_finish_compress(&state);
  jpeg_destroy_compress(&state);
  std::string file(reinterpret_cast<const char*>(bytes), size);
  std::free(bytes);
  return file;
}

// Returns pixels of one colour, or of one grey.
inline std::vector<uint8_t> plain(size_t pixels, const std::vector<uint8_t>& colour) {
  std::vector<uint8_t> all;
  for (size_t pixel = 0; pixel < pixels; ++pixel)
    all.insert(all.end(), colour.begin(), colour.end());
  return all;
}

}  // namespace dtf::data
