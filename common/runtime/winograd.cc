#include "common/runtime/winograd.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/runtime/winograd_isa.h"

namespace dtf::runtime {
namespace {

using graph::WindowAxis;

// The transformed tiles of a block stay in the second cache, unless the transformed filter is so
// large that it must be read from further away for as many tiles as can be had.
constexpr int64_t kBlockBytes = 300'000;
constexpr int64_t kFilterBytesLarge = 1'000'000;
constexpr int64_t kBlockTilesMin = 12;
constexpr int64_t kBlockTilesOfLargeFilters = 96;

WinogradTask taskOf(const Convolution& c) {
  WinogradTask t;
  t.batch = c.batch;
  t.height = c.height, t.width = c.width, t.channels = c.channels;
  t.out_height = c.out_height, t.out_width = c.out_width, t.out_channels = c.out_channels;
  t.window = c.window.height.size;
  t.top = c.window.height.before, t.left = c.window.width.before;
  return t;
}

// The gradient of the image is the convolution of dy with the filter turned around.
WinogradTask reversedTaskOf(const Convolution& c) {
  WinogradTask t = taskOf(c);
  std::swap(t.height, t.out_height);
  std::swap(t.width, t.out_width);
  std::swap(t.channels, t.out_channels);
  t.top = t.window - 1 - t.top;
  t.left = t.window - 1 - t.left;
  t.reversed = true;
  return t;
}

WinogradTask withBlocks(WinogradTask t) {
  const int64_t planes = kWinogradPlanes * static_cast<int64_t>(sizeof(float));
  int64_t tiles = kBlockBytes / (planes * (t.channels + t.out_channels));
  const bool large = planes * t.channels * t.out_channels > kFilterBytesLarge;
  tiles = std::max(tiles, large ? kBlockTilesOfLargeFilters : kBlockTilesMin);
  t.block_tiles = std::min(tiles, t.tiles());
  return t;
}

int64_t workspaceFloats(Isa isa, const WinogradTask& t) {
#if defined(__x86_64__)
  if (isa == Isa::kV4) return v4::winogradWorkspaceFloats(t);
  if (isa == Isa::kV3) return v3::winogradWorkspaceFloats(t);
#endif
  return baseline::winogradWorkspaceFloats(t);
}

WinogradTask bound(WinogradTask t, const float* x, std::byte* workspace) {
  DTF_CHECK(x != nullptr && workspace != nullptr);
  DTF_CHECK(reinterpret_cast<uintptr_t>(workspace) % 64 == 0);
  t = withBlocks(t);
  t.x = x;
  t.workspace = reinterpret_cast<float*>(workspace);
  return t;
}

void forward(Isa isa, const WinogradTask& t, const float* filter, float* y) {
#if defined(__x86_64__)
  if (isa == Isa::kV4) return v4::winogradForward(t, filter, y);
  if (isa == Isa::kV3) return v3::winogradForward(t, filter, y);
#endif
  baseline::winogradForward(t, filter, y);
}

}  // namespace

bool winogradFits(const Convolution& c) {
  const WindowAxis &high = c.window.height, &wide = c.window.width;
  const auto dense = [](const WindowAxis& axis) { return axis.stride == 1 && axis.dilation == 1; };
  return (high.size == 3 || high.size == 5) && high.size == wide.size && dense(high) &&
         dense(wide) && c.groups == 1 && c.channels % kWinogradChannels == 0 &&
         c.out_channels % kWinogradChannels == 0 && !c.empty();
}

int64_t winogradMultiplications(const Convolution& c) {
  DTF_CHECK(winogradFits(c));
  return kWinogradPlanes * taskOf(c).tiles();
}

size_t winogradWorkspaceBytes(Isa isa, const Convolution& c) {
  DTF_CHECK(winogradFits(c));
  return static_cast<size_t>(std::max(workspaceFloats(isa, withBlocks(taskOf(c))),
                                      workspaceFloats(isa, withBlocks(reversedTaskOf(c))))) *
         sizeof(float);
}

void winogradConvolve(Isa isa, const Convolution& c, const float* x, const float* filter, float* y,
                      std::byte* workspace) {
  DTF_CHECK(winogradFits(c));
  forward(isa, bound(taskOf(c), x, workspace), filter, y);
}

void winogradBackpropInput(Isa isa, const Convolution& c, const float* filter, const float* dy,
                           float* dx, std::byte* workspace) {
  DTF_CHECK(winogradFits(c));
  forward(isa, bound(reversedTaskOf(c), dy, workspace), filter, dx);
}

void winogradBackpropFilter(Isa isa, const Convolution& c, const float* x, const float* dy,
                            float* dfilter, std::byte* workspace) {
  DTF_CHECK(winogradFits(c));
  const WinogradTask t = bound(taskOf(c), x, workspace);
#if defined(__x86_64__)
  if (isa == Isa::kV4) return v4::winogradFilterGradient(t, dy, dfilter);
  if (isa == Isa::kV3) return v3::winogradFilterGradient(t, dy, dfilter);
#endif
  baseline::winogradFilterGradient(t, dy, dfilter);
}

}  // namespace dtf::runtime
