#include "common/runtime/winograd.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/runtime/winograd_isa.h"

namespace dtf::runtime {
namespace {

using graph::WindowAxis;

// The transformed tiles of a block stay in the second cache. If the transformed filter is too large
// for the caches, a block has as many tiles as possible instead.
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

// The functions of winograd_isa.h for one instruction set.
struct Loops {
  decltype(&baseline::winogradSizes) sizes;
  decltype(&baseline::winogradTransformFilter) transformFilter;
  decltype(&baseline::winogradForward) forward;
  decltype(&baseline::winogradTransformTiles) transformTiles;
  decltype(&baseline::winogradMultiplyTiles) multiplyTiles;
  decltype(&baseline::winogradFilterGradient) filterGradient;
};

Loops winogradLoops(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::kV4) {
    return {v4::winogradSizes,          v4::winogradTransformFilter, v4::winogradForward,
            v4::winogradTransformTiles, v4::winogradMultiplyTiles,   v4::winogradFilterGradient};
  }
  if (isa == Isa::kV3) {
    return {v3::winogradSizes,          v3::winogradTransformFilter, v3::winogradForward,
            v3::winogradTransformTiles, v3::winogradMultiplyTiles,   v3::winogradFilterGradient};
  }
#endif
  DTF_CHECK(isa == Isa::kBaseline);
  return {baseline::winogradSizes,         baseline::winogradTransformFilter,
          baseline::winogradForward,       baseline::winogradTransformTiles,
          baseline::winogradMultiplyTiles, baseline::winogradFilterGradient};
}

// `threads`: the threads that share one block.
WinogradTask withBlocks(WinogradTask t, int threads) {
  const int64_t planes = kWinogradPlanes * static_cast<int64_t>(sizeof(float));
  int64_t tiles = kBlockBytes / (planes * (t.channels + t.out_channels));
  const bool large = planes * t.channels * t.out_channels > kFilterBytesLarge;
  tiles = std::max(tiles, large ? kBlockTilesOfLargeFilters : kBlockTilesMin);
  t.block_tiles = std::min(tiles * threads, t.tiles());
  return t;
}

// With two threads, each computes half of the planes for all tiles. They read the image twice,
// which is smaller than its planes, and never the other thread's recent writes.
bool isSharedByPlanes(const Processor& cpu) {
  return cpu.threads() == 2;
}

size_t bytesOf(int64_t floats) {
  return static_cast<size_t>(floats) * sizeof(float);
}

size_t forwardBytes(const Processor& cpu, const WinogradTask& t) {
  const WinogradSizes sizes = winogradLoops(cpu.isa).sizes(t);
  return bytesOf(sizes.filter_planes) +
         PerThread(cpu, bytesOf(sizes.tile_planes + sizes.scratch)).bytes();
}

size_t gradientBytes(const Processor& cpu, const WinogradTask& task) {
  if (isSharedByPlanes(cpu)) return forwardBytes(cpu, withBlocks(task, 1));
  const WinogradTask t = withBlocks(task, cpu.threads());
  const WinogradSizes sizes = winogradLoops(cpu.isa).sizes(t);
  return bytesOf(sizes.filter_planes + sizes.tile_planes) +
         PerThread(cpu, bytesOf(sizes.scratch)).bytes();
}

// For an element of a filter or of a tile, with its 36 planes.
constexpr int64_t kTransformWork = 8 * kWinogradPlanes;

// Transforms the filter once, then the tiles; each thread has its own blocks.
void forward(const Processor& cpu, WinogradTask t, const float* x, const float* filter, float* y,
             std::byte* workspace) {
  DTF_CHECK(x != nullptr && workspace != nullptr);
  DTF_CHECK(reinterpret_cast<uintptr_t>(workspace) % 64 == 0);
  t = withBlocks(t, 1);
  const Loops loops = winogradLoops(cpu.isa);
  const WinogradSizes sizes = loops.sizes(t);
  t.x = x;
  t.filter_planes = reinterpret_cast<float*>(workspace);
  const PerThread own(cpu, bytesOf(sizes.tile_planes + sizes.scratch));
  const int64_t units = t.reversed ? t.out_channels : t.channels * t.out_channels;
  cpu.forRanges(
      units, kTransformWork * (t.reversed ? t.channels : 1), kWinogradChannels, 1,
      [&](int64_t begin, int64_t end, int) { loops.transformFilter(t, filter, begin, end); });
  cpu.forRanges(t.tiles(), kWinogradPlanes * t.channels * t.out_channels * kMultiplyAddWork,
                t.block_tiles, Processor::kPartsEach, [&](int64_t begin, int64_t end, int thread) {
                  WinogradTask some = t;
                  some.tile_planes = reinterpret_cast<float*>(
                      own.of(workspace + bytesOf(sizes.filter_planes), thread));
                  some.scratch = some.tile_planes + sizes.tile_planes;
                  loops.forward(some, begin, end - begin, y);
                });
}

// The threads transform the tiles of a block together, then multiply its planes, which are
// independent: every sum goes over all tiles in one order. Returns the task with the filter's
// planes.
WinogradTask makePlanesTogether(const Processor& cpu, const Convolution& c, const float* x,
                                const float* dy, std::byte* workspace) {
  WinogradTask t = withBlocks(taskOf(c), cpu.threads());
  const Loops loops = winogradLoops(cpu.isa);
  const WinogradSizes sizes = loops.sizes(t);
  t.x = x;
  t.filter_planes = reinterpret_cast<float*>(workspace);
  t.tile_planes = t.filter_planes + sizes.filter_planes;
  const PerThread scratches(cpu, bytesOf(sizes.scratch));
  const auto of = [&](int thread) {
    WinogradTask one = t;
    one.scratch = reinterpret_cast<float*>(
        scratches.of(workspace + bytesOf(sizes.filter_planes + sizes.tile_planes), thread));
    return one;
  };
  const int64_t tile_work = kTransformWork * (t.channels + t.out_channels);
  for (int64_t first = 0; first < t.tiles(); first += t.block_tiles) {
    const int64_t tiles = std::min(t.block_tiles, t.tiles() - first);
    cpu.forRanges(tiles, tile_work, [&](int64_t begin, int64_t end, int thread) {
      loops.transformTiles(of(thread), {first + begin, end - begin, begin}, dy);
    });
    cpu.forRanges(kWinogradPlanes, tiles * t.channels * t.out_channels * kMultiplyAddWork,
                  [&](int64_t begin, int64_t end, int thread) {
                    loops.multiplyTiles(of(thread), tiles, first > 0, begin, end);
                  });
  }
  return t;
}

// Like makePlanesTogether(), for isSharedByPlanes(): the same sums.
WinogradTask makePlanesByHalves(const Processor& cpu, const Convolution& c, const float* x,
                                const float* dy, std::byte* workspace) {
  WinogradTask t = withBlocks(taskOf(c), 1);
  const Loops loops = winogradLoops(cpu.isa);
  const WinogradSizes sizes = loops.sizes(t);
  t.x = x;
  t.filter_planes = reinterpret_cast<float*>(workspace);
  const PerThread own(cpu, bytesOf(sizes.tile_planes + sizes.scratch));
  constexpr int64_t kHalf = kWinogradPlanes / 2;
  const auto make = [&](int64_t half, int thread) {
    WinogradTask one = t;
    one.tile_planes =
        reinterpret_cast<float*>(own.of(workspace + bytesOf(sizes.filter_planes), thread));
    one.scratch = one.tile_planes + sizes.tile_planes;
    const WinogradHalf planes = half == 0 ? WinogradHalf::kFirst : WinogradHalf::kSecond;
    for (int64_t first = 0; first < t.tiles(); first += t.block_tiles) {
      const int64_t tiles = std::min(t.block_tiles, t.tiles() - first);
      loops.transformTiles(one, {first, tiles, 0, planes}, dy);
      loops.multiplyTiles(one, tiles, first > 0, half * kHalf, (half + 1) * kHalf);
    }
  };
  cpu.forRanges(2, t.tiles() * kHalf * t.channels * t.out_channels * kMultiplyAddWork,
                [&](int64_t begin, int64_t end, int thread) {
                  for (int64_t half = begin; half < end; ++half) make(half, thread);
                });
  return t;
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

size_t winogradWorkspaceBytes(const Processor& cpu, const Convolution& c) {
  DTF_CHECK(winogradFits(c));
  return std::max({forwardBytes(cpu, withBlocks(taskOf(c), 1)),
                   forwardBytes(cpu, withBlocks(reversedTaskOf(c), 1)),
                   gradientBytes(cpu, taskOf(c))});
}

void winogradConvolve(const Processor& cpu, const Convolution& c, const float* x,
                      const float* filter, float* y, std::byte* workspace) {
  DTF_CHECK(winogradFits(c));
  forward(cpu, taskOf(c), x, filter, y, workspace);
}

void winogradBackpropInput(const Processor& cpu, const Convolution& c, const float* filter,
                           const float* dy, float* dx, std::byte* workspace) {
  DTF_CHECK(winogradFits(c));
  forward(cpu, reversedTaskOf(c), dy, filter, dx, workspace);
}

void winogradBackpropFilter(const Processor& cpu, const Convolution& c, const float* x,
                            const float* dy, float* dfilter, std::byte* workspace) {
  DTF_CHECK(winogradFits(c));
  DTF_CHECK(x != nullptr && workspace != nullptr);
  DTF_CHECK(reinterpret_cast<uintptr_t>(workspace) % 64 == 0);
  const Loops loops = winogradLoops(cpu.isa);
  const WinogradTask t = isSharedByPlanes(cpu) ? makePlanesByHalves(cpu, c, x, dy, workspace)
                                               : makePlanesTogether(cpu, c, x, dy, workspace);
  cpu.forRanges(
      t.channels * t.out_channels, kTransformWork, kWinogradChannels, 1,
      [&](int64_t begin, int64_t end, int) { loops.filterGradient(t, begin, end, dfilter); });
}

}  // namespace dtf::runtime
