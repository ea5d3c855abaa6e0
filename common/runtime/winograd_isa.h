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
  float* workspace = nullptr;  // winogradWorkspaceFloats(), aligned to 64

  // Of the output, in each direction: what one tile of the image makes.
  int64_t tileOutputs() const { return kWinogradTile + 1 - window; }
  int64_t tilesDown() const { return (out_height + tileOutputs() - 1) / tileOutputs(); }
  int64_t tilesAcross() const { return (out_width + tileOutputs() - 1) / tileOutputs(); }
  int64_t tiles() const { return batch * tilesDown() * tilesAcross(); }
};

namespace baseline {
int64_t winogradWorkspaceFloats(const WinogradTask& task);
void winogradForward(const WinogradTask& task, const float* filter, float* y);
void winogradFilterGradient(const WinogradTask& task, const float* dy, float* dfilter);
}  // namespace baseline
namespace v3 {
int64_t winogradWorkspaceFloats(const WinogradTask& task);
void winogradForward(const WinogradTask& task, const float* filter, float* y);
void winogradFilterGradient(const WinogradTask& task, const float* dy, float* dfilter);
}  // namespace v3
namespace v4 {
int64_t winogradWorkspaceFloats(const WinogradTask& task);
void winogradForward(const WinogradTask& task, const float* filter, float* y);
void winogradFilterGradient(const WinogradTask& task, const float* dy, float* dfilter);
}  // namespace v4

}  // namespace dtf::runtime
