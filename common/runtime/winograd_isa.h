#pragma once

// The entry points of winograd_isa.cc, one per instruction set; vector.h explains why these are
// separate objects.

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
  int64_t top = 0, left = 0;  // padding; negative: rows or columns that the windows skip
  // The filter belongs to the reverse convolution, [window, window, out_channels, channels]: it is
  // rotated, and its channels are swapped.
  bool reversed = false;
  int64_t block_tiles = 0;  // tiles of a block; their transforms stay in the caches
  const float* x = nullptr;
  // Sizes as in winogradSizes(), aligned to 64.
  float* filter_planes = nullptr;  // shared by all threads
  float* tile_planes = nullptr;    // for the block; in the forward pass each thread has its own
  float* scratch = nullptr;        // for one thread

  // Outputs of one tile of the image, in each direction.
  int64_t tileOutputs() const { return kWinogradTile + 1 - window; }
  int64_t tilesDown() const { return (out_height + tileOutputs() - 1) / tileOutputs(); }
  int64_t tilesAcross() const { return (out_width + tileOutputs() - 1) / tileOutputs(); }
  int64_t tiles() const { return batch * tilesDown() * tilesAcross(); }
};

// In floats, multiples of 16.
struct WinogradSizes {
  int64_t filter_planes, tile_planes, scratch;
};

enum class WinogradHalf : uint8_t { kBoth, kFirst, kSecond };  // of the planes, by number

// The tiles [first, first + tiles), and the planes' rows from `row` on.
struct WinogradTiles {
  int64_t first, tiles, row;
  WinogradHalf planes = WinogradHalf::kBoth;  // the planes computed by winogradTransformTiles()
};

// winogradTransformFilter: transforms the pairs of channels [begin, end) of the filter; output
// channels if the task is reversed. Both are multiples of kWinogradChannels.
// winogradForward: computes the outputs of some tiles from the transformed filter.
// The gradient of the filter takes three passes: winogradTransformTiles for one block, then
// winogradMultiplyTiles for its planes [plane, end), and after all blocks winogradFilterGradient
// for the pairs of channels [begin, end).
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
