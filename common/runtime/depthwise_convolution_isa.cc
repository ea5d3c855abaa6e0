// The loops of depthwise_convolution.h, compiled once per instruction set.

#include "common/runtime/depthwise_convolution_isa.h"

#include "common/runtime/vector.h"

namespace dtf::runtime::DTF_ISA {
namespace {

// The columns of the window inside the image, for one output pixel.
struct Inside {
  Inside(const DepthwiseRow& r, int64_t out_column) : first(out_column * r.stride - r.before) {
    begin = first >= 0 ? 0 : least(r.window_width, (-first + r.dilation - 1) / r.dilation);
    const int64_t left = r.width - first;  // to the end of the image
    end = left <= 0 ? 0 : least(r.window_width, (left + r.dilation - 1) / r.dilation);
    if (end < begin) end = begin;
  }
  int64_t first;  // the image column under the window's first column, perhaps outside
  int64_t begin, end;
};

// Replaces std::integral_constant: see vector.h.
template <int N>
struct Vectors {
  static constexpr int kCount = N;
};

// Calls f(first channel, channels of a vector, Vectors<...>) for all channels: four vectors at a
// time if possible, so that no sum waits for its last addition.
template <class F>
DTF_INLINE void forEachChannels(int64_t begin, int64_t end, const F& f) {
  int64_t c = begin;
  for (; c + 4 * kLanes <= end; c += 4 * kLanes) f(c, int64_t{kLanes}, Vectors<4>());
  for (; c < end; c += kLanes) f(c, least(kLanes, end - c), Vectors<1>());
}

// Computes the gradients of `Taps` neighbouring taps in a row of the window, from `tap` on.
template <int Taps>
void filterTaps(const DepthwiseRow& r, int64_t tap, int64_t c, int64_t lanes, const float* x,
                const float* dy, float* dfilter) {
  Floats sums[Taps];
  for (int i = 0; i < Taps; ++i) sums[i] = loadSome(dfilter + (tap + i) * r.channels + c, lanes);
  for (int64_t column = 0; column < r.out_width; ++column) {
    const Inside inside(r, column);
    const Floats d = loadSome(dy + column * r.channels + c, lanes);
    const float* const from = x + (inside.first + tap * r.dilation) * r.channels + c;
    if (inside.begin <= tap && tap + Taps <= inside.end) {
#pragma GCC unroll 4
      for (int i = 0; i < Taps; ++i)
        sums[i] = fma(loadSome(from + i * r.dilation * r.channels, lanes), d, sums[i]);
    } else {
#pragma GCC unroll 4
      for (int i = 0; i < Taps; ++i)
        if (tap + i >= inside.begin && tap + i < inside.end)
          sums[i] = fma(loadSome(from + i * r.dilation * r.channels, lanes), d, sums[i]);
    }
  }
  for (int i = 0; i < Taps; ++i) storeSome(dfilter + (tap + i) * r.channels + c, sums[i], lanes);
}

}  // namespace

void depthwiseForward(const DepthwiseRow& given, const float* x, const float* filter, float* y) {
  const DepthwiseRow r = given;
  for (int64_t column = 0; column < r.out_width; ++column) {
    const Inside inside(r, column);
    forEachChannels(0, r.channels, [&](int64_t c, int64_t lanes, auto vectors) {
      constexpr int kVectors = decltype(vectors)::kCount;
      Floats sums[kVectors] = {};
      for (int64_t i = 0; i < r.window_rows; ++i) {
        for (int64_t tap = inside.begin; tap < inside.end; ++tap) {
          const float* const from =
              x + i * r.x_stride + (inside.first + tap * r.dilation) * r.channels + c;
          const float* const weights = filter + (i * r.window_width + tap) * r.channels + c;
#pragma GCC unroll 4
          for (int v = 0; v < kVectors; ++v)
            sums[v] = fma(loadSome(from + v * kLanes, lanes), loadSome(weights + v * kLanes, lanes),
                          sums[v]);
        }
      }
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v)
        storeSome(y + column * r.channels + c + v * kLanes, sums[v], lanes);
    });
  }
}

// Not fused: the gathered way also rounds products before it adds them.
void depthwiseInputGradient(const DepthwiseRow& given, const float* filter, const float* dy,
                            float* dx) {
  const DepthwiseRow r = given;
  for (int64_t column = 0; column < r.out_width; ++column) {
    const Inside inside(r, column);
    const float* const d = dy + column * r.channels;
    for (int64_t i = 0; i < r.window_rows; ++i) {
      for (int64_t tap = inside.begin; tap < inside.end; ++tap) {
        float* const to = dx + i * r.x_stride + (inside.first + tap * r.dilation) * r.channels;
        const float* const weights = filter + (i * r.window_width + tap) * r.channels;
        for (int64_t c = 0; c < r.channels; c += kLanes) {
          const int64_t lanes = least(kLanes, r.channels - c);
          const Floats product = loadSome(d + c, lanes) * loadSome(weights + c, lanes);
          storeSome(to + c, loadSome(to + c, lanes) + product, lanes);
        }
      }
    }
  }
}

void depthwiseFilterGradient(const DepthwiseRow& given, int64_t begin, int64_t end, const float* x,
                             const float* dy, float* dfilter) {
  const DepthwiseRow r = given;
  for (int64_t c = begin; c < end; c += kLanes) {
    const int64_t lanes = least(kLanes, end - c);
    int64_t tap = 0;
    for (; tap + 3 <= r.window_width; tap += 3) filterTaps<3>(r, tap, c, lanes, x, dy, dfilter);
    if (tap + 2 == r.window_width) filterTaps<2>(r, tap, c, lanes, x, dy, dfilter);
    if (tap + 1 == r.window_width) filterTaps<1>(r, tap, c, lanes, x, dy, dfilter);
  }
}

}  // namespace dtf::runtime::DTF_ISA
