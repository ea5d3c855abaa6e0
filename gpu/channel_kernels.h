#pragma once

// Kernels on [rows, channels] with numbers for each channel: a thread keeps the numbers of a pack
// of channels and iterates over rows. Sums over the rows are added in a fixed order, finally in
// double precision, and give the same bits each time.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "gpu/kernel.h"
#include "gpu/launch.h"
#include "gpu/pack.h"

namespace dtf::gpu {

// [rows, channels] in packs of N channels. Value type, passed to the device.
template <int N>
struct ChannelPacks {
  ChannelPacks(int64_t all_rows, int64_t all_channels)
      : rows(all_rows), channels(all_channels), packs(all_channels / N) {}
  int64_t rows, channels, packs;
};

// `F`: f.of(pack) returns a functor for that pack's channels; its argument is the index of a pack
// in [rows, packs]. Rows go from the last to the first: rows read last, by the preceding sums, are
// still in the cache.
template <int N, class F>
struct EachRowAt {
  F f;
  ChannelPacks<N> c;
  int64_t groups;  // groups of threads that share the rows
  DTF_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t pack = remainderOf(i, c.packs), step = groups * c.packs;
    const auto work = f.of(pack);
    const int64_t last = (c.rows * c.packs - 1 - i) / step;
    for (int64_t at = i + last * step; at >= 0; at -= step) work(at);
  }
};

template <int N, class F>
void forChannels(Device& device, const ChannelPacks<N>& c, const F& f) {
  constexpr int64_t kThreadsWanted = 256 * 1024;
  if (c.rows * c.packs == 0) return;
  const int64_t wanted = kThreadsWanted / c.packs + 1, groups = wanted < c.rows ? wanted : c.rows;
  forElements(device, groups * c.packs, EachRowAt<N, F>{f, c, groups});
}

// The split of the rows among teams for sums over them: a team has `wide` packs side by side, as
// many as fill a line of memory, and a slab of rows. Value type, passed to the device.
struct Slabs {
  template <int N>
  explicit Slabs(const ChannelPacks<N>& c) {
    constexpr int64_t kTeamsWanted = 132 * 4, kRowsMin = 64, kWideMax = 32;
    while (wide * 2 <= c.packs && wide < kWideMax) wide *= 2;
    blocks = (c.packs + wide - 1) / wide;
    const int64_t wanted = blocks == 0 ? 1 : (kTeamsWanted + blocks - 1) / blocks;
    const int64_t most = (c.rows + kRowsMin - 1) / kRowsMin;
    slabs = most < 1 ? 1 : wanted < most ? wanted : most;
    rows_each = (c.rows + slabs - 1) / slabs;
  }
  int64_t wide = 1, blocks = 0, slabs = 1, rows_each = 0;
};

// `F`: f.of(pack) as above, a functor of (index of a pack, sums), which adds to
// sums[term].at[channel of the pack].
template <int Terms, int N, class F>
struct SlabSumsAt {
  F f;
  ChannelPacks<N> c;
  Slabs s;
  float* sums;  // [slabs, Terms, channels]
  template <class T>
  DTF_HOST_DEVICE void operator()(const T& team, int64_t part) const {
    const int64_t slab = part / s.blocks, block = part % s.blocks;
    const int64_t wide = s.wide < team.size() ? s.wide : team.size();
    const int64_t lane = team.rank() / wide, lanes = team.size() / wide;
    const int64_t begin = slab * s.rows_each;
    const int64_t end = begin + s.rows_each < c.rows ? begin + s.rows_each : c.rows;
    for (int64_t first = 0; first < s.wide; first += wide) {
      const int64_t pack = block * s.wide + first + team.rank() % wide;
      const bool has = pack < c.packs;
      Pack<float, N> totals[Terms] = {};
      if (has) {
        const auto work = f.of(pack);
#if defined(__CUDA_ARCH__)
#pragma unroll 4
#endif
        for (int64_t row = begin + lane; row < end; row += lanes)
          work(row * c.packs + pack, totals);
      }
      for (int t = 0; t < Terms; ++t) {
        const Pack<float, N> total = team.sumOfEvery(wide, totals[t]);
        if (has && lane == 0) store(sums, (slab * Terms + t) * c.packs + pack, total);
      }
    }
  }
};

// `G`: g(channel, totals) receives the totals of a channel's terms. A team handles some channels
// side by side.
template <int Terms, class G>
struct ChannelTotalsAt {
  static constexpr int64_t kChannels = 8;
  G g;
  const float* sums;
  int64_t slabs, channels;
  template <class T>
  DTF_HOST_DEVICE void operator()(const T& team, int64_t part) const {
    const int64_t wide = team.size() < kChannels ? team.size() : kChannels;
    const int64_t lane = team.rank() / wide, lanes = team.size() / wide;
    for (int64_t first = 0; first < kChannels; first += wide) {
      const int64_t channel = part * kChannels + first + team.rank() % wide;
      Pack<double, Terms> totals = {};
      if (channel < channels) {
#if defined(__CUDA_ARCH__)
#pragma unroll 4
#endif
        for (int64_t slab = lane; slab < slabs; slab += lanes)
          for (int t = 0; t < Terms; ++t)
            totals.at[t] += static_cast<double>(sums[(slab * Terms + t) * channels + channel]);
      }
      totals = team.sumOfEvery(wide, totals);
      if (lane == 0 && channel < channels) g(channel, totals.at);
    }
  }
};

template <int N>
size_t channelSumBytes(const ChannelPacks<N>& c, int terms) {
  return static_cast<size_t>(Slabs(c).slabs * c.channels * terms) * sizeof(float);
}

// `sums` has channelSumBytes().
template <int Terms, int N, class F, class G>
void sumChannels(Device& device, const ChannelPacks<N>& c, float* sums, const F& f, const G& g) {
  using Totals = ChannelTotalsAt<Terms, G>;
  const Slabs s(c);
  forTeams(device, s.slabs * s.blocks, Team::kThreadsMax, SlabSumsAt<Terms, N, F>{f, c, s, sums});
  forTeams(device, (c.channels + Totals::kChannels - 1) / Totals::kChannels,
           s.slabs * Totals::kChannels, Totals{g, sums, s.slabs, c.channels});
}

// Makes K<T, N> for the type of `images`, with packs of 16 bytes if they divide the channels.
template <template <class, int> class K, class... More>
std::unique_ptr<Kernel> byChannels(const Operation& o, const TensorSpec& images, More... more) {
  const int64_t channels = images.lastDim();
  if (images.type == Type::kBFloat16) {
    if (channels % kPackOf<BFloat16> == 0)
      return std::make_unique<K<BFloat16, kPackOf<BFloat16>>>(o, more...);
    return std::make_unique<K<BFloat16, 1>>(o, more...);
  }
  if (channels % kPackOf<float> == 0) return std::make_unique<K<float, kPackOf<float>>>(o, more...);
  return std::make_unique<K<float, 1>>(o, more...);
}
// A KernelFactory for the type of the first input.
template <template <class, int> class K>
std::unique_ptr<Kernel> byChannelsOfInput(const Operation& o) {
  return byChannels<K>(o, o.inputs[0]);
}

}  // namespace dtf::gpu
