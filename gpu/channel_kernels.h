#pragma once

// Kernels on [rows, channels], of which each channel has numbers of its own: a thread keeps those of a pack of channels and
// goes through rows. Sums over the rows are added up in a fixed order, the last part of it in double precision: the same bits
// each time.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "gpu/kernel.h"
#include "gpu/launch.h"
#include "gpu/pack.h"

namespace dtf::gpu {

// How rows are shared out to threads that take N channels each. Value type, given to the device.
template <int N>
struct ChannelShares {
  ChannelShares(int64_t all_rows, int64_t all_channels)
      : rows(all_rows), channels(all_channels), packs(all_channels / N) {
    constexpr int64_t kThreadsWanted = 128 * 1024, kRowsMin = 4;
    const int64_t wanted = kThreadsWanted / (packs < 1 ? 1 : packs) + 1;
    const int64_t most = (rows + kRowsMin - 1) / kRowsMin;
    groups = most < 1 ? 1 : wanted < most ? wanted : most;
  }
  size_t sumBytes(int terms) const {
    return static_cast<size_t>(groups * channels * terms) * sizeof(float);
  }
  int64_t rows, channels, packs, groups = 1;
};

// `F`: f.of(pack) gives what works on that pack's channels: a functor of the index of a pack in [rows, packs].
template <int N, class F>
struct EachRowAt {
  F f;
  ChannelShares<N> s;
  DTF_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t pack = remainderOf(i, s.packs);
    const auto work = f.of(pack);
    const int64_t step = s.groups * s.packs, end = s.rows * s.packs;
    for (int64_t at = i; at < end; at += step) work(at);
  }
};

template <int N, class F>
void forChannels(Device& device, const ChannelShares<N>& s, const F& f) {
  forElements(device, s.groups * s.packs, EachRowAt<N, F>{f, s});
}

// `F`: f.of(pack) as above, a functor of (index of a pack, sums), which adds to sums[term].at[channel of the pack].
template <int Terms, int N, class F>
struct GroupSumsAt {
  F f;
  ChannelShares<N> s;
  float* sums;  // [groups, Terms, channels]
  DTF_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t pack = remainderOf(i, s.packs), group = quotientOf(i, s.packs);
    const auto work = f.of(pack);
    Pack<float, N> totals[Terms] = {};
    const int64_t step = s.groups * s.packs, end = s.rows * s.packs;
#if defined(__CUDA_ARCH__)
#pragma unroll 4
#endif
    for (int64_t at = i; at < end; at += step) work(at, totals);
    for (int t = 0; t < Terms; ++t) store(sums, (group * Terms + t) * s.packs + pack, totals[t]);
  }
};

// `G`: g(channel, totals) takes what a channel's terms add up to. A team has some channels side by side, so that it reads
// whole lines.
template <int Terms, class G>
struct ChannelTotalsAt {
  static constexpr int64_t kChannels = 32;
  G g;
  const float* sums;
  int64_t groups, channels;
  template <class T>
  DTF_HOST_DEVICE void operator()(const T& team, int64_t part) const {
    const int64_t wide = team.size() < kChannels ? team.size() : kChannels;
    const int64_t lane = team.rank() / wide, lanes = team.size() / wide;
    for (int64_t first = 0; first < kChannels; first += wide) {
      const int64_t channel = part * kChannels + first + team.rank() % wide;
      double totals[Terms] = {};
      if (channel < channels)
        for (int64_t group = lane; group < groups; group += lanes)
          for (int t = 0; t < Terms; ++t)
            totals[t] += static_cast<double>(sums[(group * Terms + t) * channels + channel]);
      for (int t = 0; t < Terms; ++t) totals[t] = team.sumOfEvery(wide, totals[t]);
      if (lane == 0 && channel < channels) g(channel, totals);
    }
  }
};

// `sums` has s.sumBytes(Terms).
template <int Terms, int N, class F, class G>
void sumChannels(Device& device, const ChannelShares<N>& s, float* sums, const F& f, const G& g) {
  using Totals = ChannelTotalsAt<Terms, G>;
  forElements(device, s.groups * s.packs, GroupSumsAt<Terms, N, F>{f, s, sums});
  forTeams(device, (s.channels + Totals::kChannels - 1) / Totals::kChannels, s.groups * Totals::kChannels,
           Totals{g, sums, s.groups, s.channels});
}

// As a KernelFactory: K<T, N> of the type that the first input has, by packs of 16 bytes where they divide the channels.
template <template <class, int> class K, class... More>
std::unique_ptr<Kernel> byChannels(const Operation& o, More... more) {
  const int64_t channels = o.inputs[0].lastDim();
  if (o.inputs[0].type == Type::kBFloat16) {
    if (channels % kPackOf<BFloat16> == 0)
      return std::make_unique<K<BFloat16, kPackOf<BFloat16>>>(o, more...);
    return std::make_unique<K<BFloat16, 1>>(o, more...);
  }
  if (channels % kPackOf<float> == 0) return std::make_unique<K<float, kPackOf<float>>>(o, more...);
  return std::make_unique<K<float, 1>>(o, more...);
}

}  // namespace dtf::gpu
