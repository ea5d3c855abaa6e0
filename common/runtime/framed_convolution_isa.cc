// The loops of framed_convolution.h, compiled once per instruction set: tiles of the result stay in
// registers while all their terms are added, in the order of the window's rows and taps.

#include "common/runtime/framed_convolution_isa.h"

#include "common/runtime/vector.h"

namespace dtf::runtime::DTF_ISA {
namespace {

// Accumulators of a tile: as many as registers allow.
constexpr int kFramedVectors = 2;
constexpr int kFramedPixels = kLanes == 16 ? 12 : kLanes == 8 ? 6 : 4;
constexpr int kFramedTaps = kFramedPixels;

// `Vectors` vectors of output channels; the last one has `last` lanes in use.
template <int Vectors>
struct Channels {
  int64_t last;

  DTF_INLINE Floats load(const float* from, int v) const {
    return loadSome(from + v * kLanes, v == Vectors - 1 ? last : kLanes);
  }
  DTF_INLINE void store(float* to, int v, Floats value) const {
    storeSome(to + v * kLanes, value, v == Vectors - 1 ? last : kLanes);
  }
};

// Calls f(first channel, Channels<...>) for all output channels.
template <class F>
DTF_INLINE void forEachFramedChannels(int64_t channels, const F& f) {
  int64_t k = 0;
  for (; k + kFramedVectors * kLanes <= channels; k += kFramedVectors * kLanes) {
    f(k, Channels<kFramedVectors>{kLanes});
  }
  for (; k < channels; k += kLanes) f(k, Channels<1>{least(kLanes, channels - k)});
}

// Computes neighbouring output pixels of one row: `from` is the first tap of the first pixel.
template <int Pixels, int Vectors>
DTF_INLINE void framedPixels(const FramedTask& t, const Channels<Vectors>& channels,
                             const float* from, const float* filter, float* y) {
  Floats sums[Pixels][Vectors] = {};
  for (int64_t i = 0; i < t.window_height; ++i, from += t.frame_stride) {
    for (int64_t tap = 0; tap < t.taps; ++tap, filter += t.out_channels) {
      Floats weights[Vectors];
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) weights[v] = channels.load(filter, v);
#pragma GCC unroll 12
      for (int p = 0; p < Pixels; ++p) {
        const Floats x = splat(from[p * t.pixel_stride + tap]);
#pragma GCC unroll 2
        for (int v = 0; v < Vectors; ++v) sums[p][v] = fma(x, weights[v], sums[p][v]);
      }
    }
  }
#pragma GCC unroll 12
  for (int p = 0; p < Pixels; ++p) {
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) channels.store(y + p * t.out_channels, v, sums[p][v]);
  }
}

template <int Pixels, int Vectors>
DTF_INLINE void framedPixelsOf(int64_t pixels, const FramedTask& t,
                               const Channels<Vectors>& channels, const float* from,
                               const float* filter, float* y) {
  if (pixels == Pixels) {
    framedPixels<Pixels>(t, channels, from, filter, y);
  } else if constexpr (Pixels > 1) {
    framedPixelsOf<Pixels - 1>(pixels, t, channels, from, filter, y);
  }
}

template <int Vectors>
void framedRows(const FramedTask& t, const Channels<Vectors>& channels, const float* filter,
                float* y) {
  const int64_t tiles = (t.out_width + kFramedPixels - 1) / kFramedPixels;
  for (int64_t row = 0; row < t.out_height; ++row) {
    const float* const line = t.frame + row * t.stride_height * t.frame_stride;
    for (int64_t tile = 0; tile < tiles; ++tile) {  // tiles of nearly equal size
      const int64_t first = t.out_width * tile / tiles;
      const int64_t pixels = t.out_width * (tile + 1) / tiles - first;
      framedPixelsOf<kFramedPixels>(pixels, t, channels, line + first * t.pixel_stride, filter,
                                    y + (row * t.out_width + first) * t.out_channels);
    }
  }
}

// Computes the gradients of `Taps` neighbouring taps in each of `Rows` rows of the window, over all
// pixels.
template <int Rows, int Taps, int Vectors>
void framedTaps(const FramedTask& t, const Channels<Vectors>& channels, const float* from,
                const float* dy, float* dfilter) {
  Floats sums[Rows * Taps][Vectors] = {};
  for (int64_t row = 0; row < t.out_height; ++row) {
    const float* pixel = from + row * t.stride_height * t.frame_stride;
    for (int64_t column = 0; column < t.out_width; ++column) {
      Floats d[Vectors];
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) d[v] = channels.load(dy, v);
#pragma GCC unroll 12
      for (int tap = 0; tap < Rows * Taps; ++tap) {
        const Floats x = splat(pixel[tap / Taps * t.frame_stride + tap % Taps]);
#pragma GCC unroll 2
        for (int v = 0; v < Vectors; ++v) sums[tap][v] = fma(x, d[v], sums[tap][v]);
      }
      pixel += t.pixel_stride;
      dy += t.out_channels;
    }
  }
  for (int tap = 0; tap < Rows * Taps; ++tap) {
    float* const to = dfilter + (tap / Taps * t.taps + tap % Taps) * t.out_channels;
    for (int v = 0; v < Vectors; ++v) {
      channels.store(to, v, channels.load(to, v) + sums[tap][v]);
    }
  }
}

template <int Taps, int Vectors>
DTF_INLINE void framedTapsOf(int64_t taps, int64_t rows, const FramedTask& t,
                             const Channels<Vectors>& channels, const float* from, const float* dy,
                             float* dfilter) {
  if (taps == Taps) {
    if constexpr (2 * Taps <= kFramedTaps) {
      if (rows == 2) return framedTaps<2, Taps>(t, channels, from, dy, dfilter);
    }
    framedTaps<1, Taps>(t, channels, from, dy, dfilter);
  } else if constexpr (Taps > 1) {
    framedTapsOf<Taps - 1>(taps, rows, t, channels, from, dy, dfilter);
  }
}

// Goes row by row of the window, or two rows at a time if their taps fit the registers.
template <int Vectors>
void framedFilter(const FramedTask& t, const Channels<Vectors>& channels, const float* dy,
                  float* dfilter) {
  const int64_t parts = (t.taps + kFramedTaps - 1) / kFramedTaps;
  const int64_t together = 2 * t.taps <= kFramedTaps ? 2 : 1;
  for (int64_t i = 0; i < t.window_height; i += together) {
    const int64_t rows = least(together, t.window_height - i);
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t first = t.taps * part / parts;
      const int64_t taps = t.taps * (part + 1) / parts - first;
      framedTapsOf<kFramedTaps>(taps, rows, t, channels, t.frame + i * t.frame_stride + first, dy,
                                dfilter + (i * t.taps + first) * t.out_channels);
    }
  }
}

}  // namespace

void framedForward(const FramedTask& t, const float* filter, float* y) {
  forEachFramedChannels(t.out_channels, [&](int64_t k, const auto& channels) {
    framedRows(t, channels, filter + k, y + k);
  });
}

void framedFilterGradient(const FramedTask& t, const float* dy, float* dfilter) {
  forEachFramedChannels(t.out_channels, [&](int64_t k, const auto& channels) {
    framedFilter(t, channels, dy + k, dfilter + k);
  });
}

}  // namespace dtf::runtime::DTF_ISA
