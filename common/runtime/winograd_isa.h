#pragma once

// What winograd_isa.cc computes, once per instruction set; see vector.h for why these are separate
// objects.

#include <cstddef>
#include <cstdint>

namespace dtf::runtime {

inline constexpr int64_t kWinogradTile = 6;  // of the image, in each direction
inline constexpr int64_t kWinogradPlanes = kWinogradTile * kWinogradTile;
inline constexpr int64_t kWinogradChannels = 16;  // channels come in multiples of this

// A convolution of `x` [batch, height, width, channels] to [batch, out_height, out_width,
// out_channels] with a filter of window x window. Value type.
struct WinogradTask {
  int64_t batch = 0, height = 0, width = 0, channels = 0;
  int64_t out_height = 0, out_width = 0, out_channels = 0;
  int64_t window = 3;         // or 5
  int64_t top = 0, left = 0;  // padding; negative: what the windows leave out
  // The filter is that of the reverse convolution, [window, window, out_channels, channels]: it is
  // turned around and its channels change places.
  bool reversed = false;
  int64_t block_tiles = 0;  // whose transforms stay in the caches
  const float* x = nullptr;
  // By winogradSizes(), aligned to 64.
  float* filter_planes = nullptr;  // shared by all threads
  float* tile_planes = nullptr;    // of the block; forward, each thread has its own
  float* scratch = nullptr;        // one thread's

  // Of the output, in each direction: what one tile of the image makes.
  int64_t tileOutputs() const { return kWinogradTile + 1 - window; }
  int64_t tilesDown() const { return (out_height + tileOutputs() - 1) / tileOutputs(); }
  int64_t tilesAcross() const { return (out_width + tileOutputs() - 1) / tileOutputs(); }
  int64_t tiles() const { return batch * tilesDown() * tilesAcross(); }
};

// In floats, multiples of 16.
struct WinogradSizes {
  int64_t filter_planes, tile_planes, scratch;
};

enum class WinogradHalf : uint8_t { kBoth, kFirst, kSecond };  // of the planes, by their number

// Some tiles [first, first + tiles) of all, the rows from `row` of the planes.
struct WinogradTiles {
  int64_t first, tiles, row;
  WinogradHalf planes = WinogradHalf::kBoth;  // that winogradTransformTiles makes
};

// winogradTransformFilter: the part [begin, end) of the filter's pairs of channels; of output
// channels where the task is reversed. Both are multiples of kWinogradChannels.
// winogradForward: the outputs of some tiles, of the transformed filter.
// The gradient of the filter takes three turns: winogradTransformTiles those of one block, then
// winogradMultiplyTiles its planes [plane, end), and after all blocks winogradFilterGradient for
// the pairs of channels [begin, end).
namespace baseline {
WinogradSizes winogradSizes(const WinogradTask& task);
void winogradTransformFilter(const WinogradTask& task, const float* filter, int64_t begin,
                             int64_t end);
void winogradForward(const WinogradTask& task, int64_t first, int64_t tiles, float* y);
void winogradTransformTiles(const WinogradTask& task, const WinogradTiles& tiles, const float* dy);
void winogradMultiplyTiles(const WinogradTask& task, int64_t tiles, bool accumulate, int64_t plane,
                           int64_t end);
void winogradFilterGradient(const WinogradTask& task, int64_t begin, int64_t end, float* dfilter);
}  // namespace baseline
namespace v3 {
WinogradSizes winogradSizes(const WinogradTask& task);
void winogradTransformFilter(const WinogradTask& task, const float* filter, int64_t begin,
                             int64_t end);
void winogradForward(const WinogradTask& task, int64_t first, int64_t tiles, float* y);
void winogradTransformTiles(const WinogradTask& task, const WinogradTiles& tiles, const float* dy);
void winogradMultiplyTiles(const WinogradTask& task, int64_t tiles, bool accumulate, int64_t plane,
                           int64_t end);
void winogradFilterGradient(const WinogradTask& task, int64_t begin, int64_t end, float* dfilter);
}  // namespace v3
namespace v4 {
WinogradSizes winogradSizes(const WinogradTask& task);
void winogradTransformFilter(const WinogradTask& task, const float* filter, int64_t begin,
                             int64_t end);
void winogradForward(const WinogradTask& task, int64_t first, int64_t tiles, float* y);
void winogradTransformTiles(const WinogradTask& task, const WinogradTiles& tiles, const float* dy);
void winogradMultiplyTiles(const WinogradTask& task, int64_t tiles, bool accumulate, int64_t plane,
                           int64_t end);
void winogradFilterGradient(const WinogradTask& task, int64_t begin, int64_t end, float* dfilter);
}  // namespace v4

}  // namespace dtf::runtime
