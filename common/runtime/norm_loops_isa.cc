// The loops of norm_loops.h, compiled once per instruction set.

#include "common/runtime/norm_loops_isa.h"
#include "common/runtime/vector.h"

namespace dtf::runtime::DTF_ISA {
namespace {

// Sums of this many rows are added up before they join the total, and what that rounds away is kept
// (W. Kahan): a sum over a million rows would lose its last digits otherwise.
constexpr int64_t kSumRows = 128;

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

// f(first channel, lanes) for every vector of channels.
template <class F>
DTF_INLINE void forEachChannels(int64_t channels, const F& f) {
  int64_t c = 0;
  for (; c + kLanes <= channels; c += kLanes) f(c, WholeVector{});
  if (c < channels) f(c, PartVector{channels - c});
}

// The sums of `Sums` numbers over all rows: term(row, v, sums) adds those of a row's vector v.
template <int Vectors, int Sums, class Term>
DTF_INLINE void sumRows(int64_t rows, const Term& term, Floats (&totals)[Vectors][Sums]) {
  Floats lost[Vectors][Sums] = {};
  for (int64_t first = 0; first < rows; first += kSumRows) {
    Floats sums[Vectors][Sums] = {};
    const int64_t last = least(rows, first + kSumRows);
    for (int64_t row = first; row < last; ++row) {
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) term(row, v, sums[v]);
    }
    for (int v = 0; v < Vectors; ++v) {
      for (int s = 0; s < Sums; ++s) {
        const Floats more = sums[v][s] - lost[v][s];
        const Floats total = totals[v][s] + more;
        lost[v][s] = (total - totals[v][s]) - more;
        totals[v][s] = total;
      }
    }
  }
}

// sumRows() for all channels, by four vectors where there are so many: a row is then read in whole
// lines. `make_term(channel, lanes)` makes a term(row, sums) of one vector, `use(channel, lanes,
// totals)` takes what came out.
template <int Sums, class MakeTerm, class Use>
DTF_INLINE void sumColumns(int64_t rows, int64_t channels, const MakeTerm& make_term,
                           const Use& use) {
  constexpr int kTogether = 4;
  int64_t c = 0;
  for (; c + kTogether * kLanes <= channels; c += kTogether * kLanes) {
    Floats totals[kTogether][Sums] = {};
    const auto first = make_term(c, WholeVector{});
    const auto second = make_term(c + kLanes, WholeVector{});
    const auto third = make_term(c + 2 * kLanes, WholeVector{});
    const auto fourth = make_term(c + 3 * kLanes, WholeVector{});
    const auto term = [&](int64_t row, int v, Floats(&sums)[Sums]) {
      if (v == 0) first(row, sums);
      if (v == 1) second(row, sums);
      if (v == 2) third(row, sums);
      if (v == 3) fourth(row, sums);
    };
    sumRows<kTogether, Sums>(rows, term, totals);
    for (int v = 0; v < kTogether; ++v) use(c + v * kLanes, WholeVector{}, totals[v]);
  }
  forEachChannels(channels - c, [&](int64_t more, auto lanes) {
    Floats totals[1][Sums] = {};
    const auto one = make_term(c + more, lanes);
    const auto term = [&](int64_t row, int, Floats(&sums)[Sums]) { one(row, sums); };
    sumRows<1, Sums>(rows, term, totals);
    use(c + more, lanes, totals[0]);
  });
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

// y = (x - mean) * factor + offset by channel.
template <class Factor>
DTF_INLINE void normaliseChannels(const NormInput& in, const float* mean, const Factor& factor,
                                  float* y) {
  for (int64_t row = 0; row < in.rows; ++row) {
    const float* const x = in.x + row * in.channels;
    float* const to = y + row * in.channels;
    forEachChannels(in.channels, [&](int64_t c, auto lanes) {
      const Floats from_mean = lanes.load(x + c) - lanes.load(mean + c);
      lanes.store(to + c, from_mean * factor(c, lanes) + lanes.load(in.offset + c));
    });
  }
}

void batch(const NormInput& in, const NormOutput& out) {
  const auto rows = static_cast<float>(in.rows);
  const float others = in.rows > 1 ? rows - 1.0f : 1.0f;
  const auto element = [&](int64_t row, int64_t c, auto lanes) {
    return lanes.load(in.x + row * in.channels + c);
  };
  sumColumns<1>(
      in.rows, in.channels,
      [&](int64_t c, auto lanes) {
        return [=](int64_t row, Floats(&sums)[1]) { sums[0] += element(row, c, lanes); };
      },
      [&](int64_t c, auto lanes, const Floats(&totals)[1]) {
        lanes.store(out.mean + c, totals[0] / rows);
      });
  sumColumns<1>(
      in.rows, in.channels,
      [&](int64_t c, auto lanes) {
        const Floats mean = lanes.load(out.mean + c);
        return [=](int64_t row, Floats(&sums)[1]) {
          const Floats from_mean = element(row, c, lanes) - mean;
          sums[0] += from_mean * from_mean;
        };
      },
      [&](int64_t c, auto lanes, const Floats(&totals)[1]) {
        lanes.store(out.variance + c, totals[0] / others);
        lanes.store(out.inverse + c, inverseRoot(totals[0] / rows + in.epsilon));
      });
  normaliseChannels(
      in, out.mean,
      [&](int64_t c, auto lanes) { return lanes.load(out.inverse + c) * lanes.load(in.scale + c); },
      out.y);
}

void batchInference(const NormInput& in, const float* mean, const float* variance, float* y) {
  normaliseChannels(
      in, mean,
      [&](int64_t c, auto lanes) {
        return inverseRoot(lanes.load(variance + c) + in.epsilon) * lanes.load(in.scale + c);
      },
      y);
}

// dx = inverse * scale * (dy - mean(dy) - h * mean(dy * h)), where h = (x - mean) * inverse.
void batchGrad(const NormGradient& g) {
  const auto rows = static_cast<float>(g.rows);
  sumColumns<2>(
      g.rows, g.channels,
      [&](int64_t c, auto lanes) {
        const Floats mean = lanes.load(g.mean + c);
        const float *const dy = g.dy + c, *const x = g.x + c;
        return [=, channels = g.channels](int64_t row, Floats(&sums)[2]) {
          const Floats d = lanes.load(dy + row * channels);
          sums[0] += d;
          sums[1] += d * (lanes.load(x + row * channels) - mean);
        };
      },
      [&](int64_t c, auto lanes, const Floats(&totals)[2]) {
        lanes.store(g.doffset + c, totals[0]);
        lanes.store(g.dscale + c, totals[1] * lanes.load(g.inverse + c));
      });
  for (int64_t row = 0; row < g.rows; ++row) {
    const float *const dy = g.dy + row * g.channels, *const x = g.x + row * g.channels;
    float* const dx = g.dx + row * g.channels;
    forEachChannels(g.channels, [&](int64_t c, auto lanes) {
      const Floats inverse = lanes.load(g.inverse + c);
      const Floats h = (lanes.load(x + c) - lanes.load(g.mean + c)) * inverse;
      const Floats of_scale = h * (lanes.load(g.dscale + c) / rows);
      const Floats rest = lanes.load(dy + c) - lanes.load(g.doffset + c) / rows - of_scale;
      lanes.store(dx + c, rest * (inverse * lanes.load(g.scale + c)));
    });
  }
}

// Over a row, in kReduceLanes lanes on every instruction set.
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

void layer(const NormInput& in, const NormOutput& out) {
  const auto channels = static_cast<float>(in.channels);
  for (int64_t row = 0; row < in.rows; ++row) {
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

// As of a batch, where mean() is over the row of dy * scale.
void layerGrad(const NormGradient& g) {
  sumColumns<2>(
      g.rows, g.channels,
      [&](int64_t c, auto lanes) {
        const float *const dy = g.dy + c, *const x = g.x + c;
        return [=, &g](int64_t row, Floats(&sums)[2]) {
          const Floats d = lanes.load(dy + row * g.channels);
          sums[0] += d;
          sums[1] += d * ((lanes.load(x + row * g.channels) - g.mean[row]) * g.inverse[row]);
        };
      },
      [&](int64_t c, auto lanes, const Floats(&totals)[2]) {
        lanes.store(g.doffset + c, totals[0]);
        lanes.store(g.dscale + c, totals[1]);
      });
  const auto channels = static_cast<float>(g.channels);
  for (int64_t row = 0; row < g.rows; ++row) {
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
    .batch = batch,
    .batchInference = batchInference,
    .batchGrad = batchGrad,
    .layer = layer,
    .layerGrad = layerGrad,
};

}  // namespace dtf::runtime::DTF_ISA
