// The loops of norm_loops.h, compiled once per instruction set.

#include "common/runtime/norm_loops_isa.h"
#include "common/runtime/vector.h"

namespace dtf::runtime::DTF_ISA {
namespace {

// Whole vectors of channels, or the last ones that don't fill one.
struct WholeVector {
  DTF_INLINE Floats load(const float* from) const { return DTF_ISA::load(from); }
  DTF_INLINE void store(float* to, Floats v) const { DTF_ISA::store(to, v); }
};
struct PartVector {
  int64_t n;
  DTF_INLINE Floats load(const float* from) const { return loadPartial(from, n); }
  DTF_INLINE void store(float* to, Floats v) const { storePartial(to, v, n); }
};

// Calls f(first channel, lanes) for every vector of channels.
template <class F>
DTF_INLINE void forEachChannels(int64_t channels, const F& f) {
  int64_t c = 0;
  for (; c + kLanes <= channels; c += kLanes) f(c, WholeVector{});
  if (c < channels) f(c, PartVector{channels - c});
}

// Sums `Sums` numbers over the rows of a block: term(row, v, sums) adds the numbers of a row's
// vector v.
template <int Vectors, int Sums, class Term>
DTF_INLINE void sumBlock(int64_t rows, int64_t block, const Term& term,
                         Floats (&sums)[Vectors][Sums]) {
  const int64_t first = block * kNormBlockRows, last = least(rows, first + kNormBlockRows);
  for (int64_t row = first; row < last; ++row) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) term(row, v, sums[v]);
  }
}

// Runs sumBlock() for all channels and the blocks [begin, end), by four vectors if possible, to
// read a row in whole lines. `make_term(channel, lanes)` makes a term(row, sums) for one vector.
template <int Sums, class MakeTerm>
DTF_INLINE void sumBlocks(int64_t rows, int64_t channels, int64_t begin, int64_t end, float* to,
                          const MakeTerm& make_term) {
  constexpr int kTogether = 4;
  for (int64_t block = begin; block < end; ++block) {
    float* const made = to + block * Sums * channels;
    int64_t c = 0;
    for (; c + kTogether * kLanes <= channels; c += kTogether * kLanes) {
      Floats sums[kTogether][Sums] = {};
      const auto first = make_term(c, WholeVector{});
      const auto second = make_term(c + kLanes, WholeVector{});
      const auto third = make_term(c + 2 * kLanes, WholeVector{});
      const auto fourth = make_term(c + 3 * kLanes, WholeVector{});
      const auto term = [&](int64_t row, int v, Floats(&of)[Sums]) {
        if (v == 0) first(row, of);
        if (v == 1) second(row, of);
        if (v == 2) third(row, of);
        if (v == 3) fourth(row, of);
      };
      sumBlock<kTogether, Sums>(rows, block, term, sums);
      for (int v = 0; v < kTogether; ++v) {
        for (int s = 0; s < Sums; ++s) store(made + s * channels + c + v * kLanes, sums[v][s]);
      }
    }
    forEachChannels(channels - c, [&](int64_t more, auto lanes) {
      Floats sums[1][Sums] = {};
      const auto one = make_term(c + more, lanes);
      const auto term = [&](int64_t row, int, Floats(&of)[Sums]) { one(row, of); };
      sumBlock<1, Sums>(rows, block, term, sums);
      for (int s = 0; s < Sums; ++s) lanes.store(made + s * channels + c + more, sums[0][s]);
    });
  }
}

// Adds up all blocks in order, for one vector of channels.
template <int Sums, class Lanes>
DTF_INLINE void addBlocks(int64_t rows, int64_t channels, const float* sums, int64_t c, Lanes lanes,
                          Floats (&totals)[Sums]) {
  Floats lost[Sums] = {};
  const float* from = sums + c;
  for (int64_t first = 0; first < rows; first += kNormBlockRows) {
    for (int s = 0; s < Sums; ++s, from += channels) {
      const Floats more = lanes.load(from) - lost[s];
      const Floats total = totals[s] + more;
      lost[s] = (total - totals[s]) - more;
      totals[s] = total;
    }
  }
}

DTF_INLINE Floats inverseRoot(Floats v) {
  Floats root;
#if defined(__AVX512F__)
  root = _mm512_maskz_sqrt_ps(0xffff, v);
#elif defined(__AVX2__)
  root = _mm256_sqrt_ps(v);
#else
  for (int i = 0; i < kLanes; ++i) root[i] = __builtin_sqrtf(v[i]);
#endif
  return 1.0f / root;
}

// Computes y = (x - mean) * factor + offset by channel, then stores finish(element, c, lanes, y).
template <class Factor, class Finish>
DTF_INLINE void normaliseChannels(const NormInput& in, const float* mean, const Factor& factor,
                                  float* y, int64_t begin, int64_t end, const Finish& finish) {
  for (int64_t row = begin; row < end; ++row) {
    const int64_t first = row * in.channels;
    forEachChannels(in.channels, [&](int64_t c, auto lanes) {
      const Floats from_mean = lanes.load(in.x + first + c) - lanes.load(mean + c);
      const Floats normalised = from_mean * factor(c, lanes) + lanes.load(in.offset + c);
      lanes.store(y + first + c, finish(first + c, lanes, normalised));
    });
  }
}

// NaN stays NaN, as in vector_loops_isa.cc.
DTF_INLINE Floats reluOf(Floats v) {
  return v < 0.0f ? Floats{} : v;
}

void batchSums(const NormInput& in, const float* mean, int64_t begin, int64_t end, float* sums) {
  const auto element = [x = in.x, channels = in.channels](int64_t row, int64_t c, auto lanes) {
    return lanes.load(x + row * channels + c);
  };
  if (mean == nullptr) {
    sumBlocks<1>(in.rows, in.channels, begin, end, sums, [&](int64_t c, auto lanes) {
      return [=](int64_t row, Floats(&of)[1]) { of[0] += element(row, c, lanes); };
    });
    return;
  }
  sumBlocks<1>(in.rows, in.channels, begin, end, sums, [&](int64_t c, auto lanes) {
    const Floats centre = lanes.load(mean + c);
    return [=](int64_t row, Floats(&of)[1]) {
      const Floats from_mean = element(row, c, lanes) - centre;
      of[0] += from_mean * from_mean;
    };
  });
}

void batchMean(const NormInput& in, const float* sums, float* mean) {
  forEachChannels(in.channels, [&](int64_t c, auto lanes) {
    Floats totals[1] = {};
    addBlocks(in.rows, in.channels, sums, c, lanes, totals);
    lanes.store(mean + c, totals[0] / static_cast<float>(in.rows));
  });
}

void batchVariance(const NormInput& in, const float* sums, const NormOutput& out) {
  const auto rows = static_cast<float>(in.rows);
  const float others = in.rows > 1 ? rows - 1.0f : 1.0f;
  forEachChannels(in.channels, [&](int64_t c, auto lanes) {
    Floats totals[1] = {};
    addBlocks(in.rows, in.channels, sums, c, lanes, totals);
    lanes.store(out.variance + c, totals[0] / others);
    lanes.store(out.inverse + c, inverseRoot(totals[0] / rows + in.epsilon));
  });
}

void batch(const NormInput& in, const NormOutput& out, int64_t begin, int64_t end) {
  const auto run = [&](const auto& finish) {
    normaliseChannels(
        in, out.mean,
        [&](int64_t c, auto lanes) {
          return lanes.load(out.inverse + c) * lanes.load(in.scale + c);
        },
        out.y, begin, end, finish);
  };
  if (in.residual != nullptr) {
    run([&](int64_t at, auto lanes, Floats v) { return reluOf(v + lanes.load(in.residual + at)); });
  } else if (in.relu) {
    run([](int64_t, auto, Floats v) { return reluOf(v); });
  } else {
    run([](int64_t, auto, Floats v) { return v; });
  }
}

void batchInference(const NormInput& in, const float* mean, const float* variance, float* y,
                    int64_t begin, int64_t end) {
  normaliseChannels(
      in, mean,
      [&](int64_t c, auto lanes) {
        return inverseRoot(lanes.load(variance + c) + in.epsilon) * lanes.load(in.scale + c);
      },
      y, begin, end, [](int64_t, auto, Floats v) { return v; });
}

using Mask = NormGradient::Mask;

// The incoming gradient of a normalisation's result, element by element: optionally masked by a
// relu, optionally a sum of two. Value type.
template <Mask kMask, bool kTwo>
struct Incoming {
  const NormGradient& g;

  // `from_mean`: x's distance from its mean.
  template <class Lanes>
  DTF_INLINE Floats at(int64_t element, int64_t c, Lanes lanes, Floats from_mean) const {
    Floats d = lanes.load(g.dy + element);
    if constexpr (kTwo) d += lanes.load(g.dy_more + element);
    if constexpr (kMask == Mask::kNone) return d;
    Floats y;
    if constexpr (kMask == Mask::kFromY) {
      y = lanes.load(g.y + element);
    } else {
      y = from_mean * (lanes.load(g.inverse + c) * lanes.load(g.scale + c)) +
          lanes.load(g.offset + c);
    }
    return y <= 0.0f ? Floats{} : d;
  }
};

// Calls f(incoming) with the kind given by `g`.
template <class F>
DTF_INLINE void withIncoming(const NormGradient& g, const F& f) {
  const bool two = g.dy_more != nullptr;
  if (g.mask == Mask::kFromY)
    return two ? f(Incoming<Mask::kFromY, true>{g}) : f(Incoming<Mask::kFromY, false>{g});
  if (g.mask == Mask::kFromX)
    return two ? f(Incoming<Mask::kFromX, true>{g}) : f(Incoming<Mask::kFromX, false>{g});
  return two ? f(Incoming<Mask::kNone, true>{g}) : f(Incoming<Mask::kNone, false>{g});
}

void batchGradSums(const NormGradient& g, int64_t begin, int64_t end, float* sums) {
  withIncoming(g, [&](auto incoming) {
    sumBlocks<2>(g.rows, g.channels, begin, end, sums, [&](int64_t c, auto lanes) {
      const Floats mean = lanes.load(g.mean + c);
      return [=, channels = g.channels, x = g.x](int64_t row, Floats(&of)[2]) {
        const Floats from_mean = lanes.load(x + row * channels + c) - mean;
        const Floats d = incoming.at(row * channels + c, c, lanes, from_mean);
        of[0] += d;
        of[1] += d * from_mean;
      };
    });
  });
}

void batchGradOfScale(const NormGradient& g, const float* sums) {
  forEachChannels(g.channels, [&](int64_t c, auto lanes) {
    Floats totals[2] = {};
    addBlocks(g.rows, g.channels, sums, c, lanes, totals);
    lanes.store(g.doffset + c, totals[0]);
    lanes.store(g.dscale + c, totals[1] * lanes.load(g.inverse + c));
  });
}

// dx = inverse * scale * (dy - mean(dy) - h * mean(dy * h)), where h = (x - mean) * inverse.
void batchGrad(const NormGradient& g, int64_t begin, int64_t end) {
  const auto rows = static_cast<float>(g.rows);
  withIncoming(g, [&](auto incoming) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t first = row * g.channels;
      forEachChannels(g.channels, [&](int64_t c, auto lanes) {
        const Floats inverse = lanes.load(g.inverse + c);
        const Floats from_mean = lanes.load(g.x + first + c) - lanes.load(g.mean + c);
        const Floats h = from_mean * inverse;
        const Floats of_scale = h * (lanes.load(g.dscale + c) / rows);
        const Floats d = incoming.at(first + c, c, lanes, from_mean);
        const Floats rest = d - lanes.load(g.doffset + c) / rows - of_scale;
        lanes.store(g.dx + first + c, rest * (inverse * lanes.load(g.scale + c)));
        if (g.passed != nullptr) lanes.store(g.passed + first + c, d);
      });
    }
  });
}

// Sums over a row, in kReduceLanes lanes on every instruction set.
template <class F>
DTF_INLINE float sumRow(int64_t n, const F& f) {
  float lanes[kReduceLanes] = {};
  int64_t i = 0;
  for (; i + kReduceLanes <= n; i += kReduceLanes) {
    for (int l = 0; l < kReduceLanes; ++l) lanes[l] += f(i + l);
  }
  for (int l = 0; i + l < n; ++l) lanes[l] += f(i + l);
  return sum(lanes);
}

void layer(const NormInput& in, const NormOutput& out, int64_t begin, int64_t end) {
  const auto channels = static_cast<float>(in.channels);
  for (int64_t row = begin; row < end; ++row) {
    const float* const x = in.x + row * in.channels;
    float* const y = out.y + row * in.channels;
    const float mean = sumRow(in.channels, [x](int64_t i) { return x[i]; }) / channels;
    const float squares =
        sumRow(in.channels, [x, mean](int64_t i) { return (x[i] - mean) * (x[i] - mean); });
    const float inverse = inverseRoot(splat(squares / channels + in.epsilon))[0];
    out.mean[row] = mean;
    out.inverse[row] = inverse;
    forEachChannels(in.channels, [&](int64_t c, auto lanes) {
      const Floats h = (lanes.load(x + c) - mean) * inverse;
      lanes.store(y + c, h * lanes.load(in.scale + c) + lanes.load(in.offset + c));
    });
  }
}

void layerGradSums(const NormGradient& g, int64_t begin, int64_t end, float* sums) {
  sumBlocks<2>(g.rows, g.channels, begin, end, sums, [&](int64_t c, auto lanes) {
    const float *const dy = g.dy + c, *const x = g.x + c;
    return [=, &g](int64_t row, Floats(&of)[2]) {
      const Floats d = lanes.load(dy + row * g.channels);
      of[0] += d;
      of[1] += d * ((lanes.load(x + row * g.channels) - g.mean[row]) * g.inverse[row]);
    };
  });
}

void layerGradOfScale(const NormGradient& g, const float* sums) {
  forEachChannels(g.channels, [&](int64_t c, auto lanes) {
    Floats totals[2] = {};
    addBlocks(g.rows, g.channels, sums, c, lanes, totals);
    lanes.store(g.doffset + c, totals[0]);
    lanes.store(g.dscale + c, totals[1]);
  });
}

// Like batchGrad(), where mean() is over the row of dy * scale.
void layerGrad(const NormGradient& g, int64_t begin, int64_t end) {
  const auto channels = static_cast<float>(g.channels);
  for (int64_t row = begin; row < end; ++row) {
    const float *const dy = g.dy + row * g.channels, *const x = g.x + row * g.channels;
    float* const dx = g.dx + row * g.channels;
    const float mean = g.mean[row], inverse = g.inverse[row];
    const float plain =
        sumRow(g.channels, [&](int64_t i) { return dy[i] * g.scale[i]; }) / channels;
    const float along =
        sumRow(g.channels,
               [&](int64_t i) { return dy[i] * g.scale[i] * ((x[i] - mean) * inverse); }) /
        channels;
    forEachChannels(g.channels, [&](int64_t c, auto lanes) {
      const Floats h = (lanes.load(x + c) - mean) * inverse;
      const Floats scaled = lanes.load(dy + c) * lanes.load(g.scale + c);
      lanes.store(dx + c, inverse * (scaled - plain - h * along));
    });
  }
}

}  // namespace

const NormLoops kNormLoops = {
    .batchSums = batchSums,
    .batchMean = batchMean,
    .batchVariance = batchVariance,
    .batch = batch,
    .batchInference = batchInference,
    .batchGradSums = batchGradSums,
    .batchGradOfScale = batchGradOfScale,
    .batchGrad = batchGrad,
    .layer = layer,
    .layerGradSums = layerGradSums,
    .layerGradOfScale = layerGradOfScale,
    .layerGrad = layerGrad,
};

}  // namespace dtf::runtime::DTF_ISA
