// The kernel behind fused_softmax.h, compiled once per instruction set: four passes over memory
// that stays in cache.
//   1. The weights are transposed in blocks of 16 inputs, so that the lanes run over inputs.
//   2. Rows, two at a time: bytes become floats, which go into the products and, for pass 4, into
//      memory. Per row and class there are 16 partial sums, added up in one fixed order.
//   3. Softmax, loss and gradient of the logits, 16 rows at a time: the lanes run over rows, so no
//      step is horizontal.
//   4. The gradient of the weights, 32 inputs at a time: accumulated in registers over the batch in
//      row order, then transposed back.
// Work per step at 100 x 784 x 10: 98 000 fused multiply-adds of 16 lanes, in passes 2 and 4.

#include "common/runtime/fused_softmax_isa.h"
#include "common/runtime/vector.h"

namespace dtf::runtime::DTF_ISA {
namespace {

constexpr int kBlock = 16;               // inputs of a block, rows of a group
constexpr int kParts = kBlock / kLanes;  // registers of a block
constexpr int kClassBlockMax = 10;  // classes that share a load of the inputs; bounded by registers
static_assert(kBlock == kReduceLanes);

DTF_INLINE Floats loadInputs(const float* x) {
  return load(x);
}
DTF_INLINE Floats loadInputs(const uint8_t* x) {
#if defined(__AVX512F__)
  // The masked form, because g++ 12 warns about the plain form's undefined source.
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x));
  const IntsOf<Floats> ints = (IntsOf<Floats>)_mm512_maskz_cvtepu8_epi32(0xffff, bytes);
#elif defined(__AVX2__)
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(x));
  const IntsOf<Floats> ints = (IntsOf<Floats>)_mm256_cvtepu8_epi32(bytes);
#else
  const IntsOf<Floats> ints = {x[0], x[1], x[2], x[3]};
#endif
  return __builtin_convertvector(ints, Floats);
}

// Pass 1.
void transposeWeights(const FusedSoftmaxStep& s, float* out) {
  const int64_t inputs = s.inputs, classes = s.classes;
  const float* const weights = s.weights;
  for (int64_t k = 0; k < inputs; k += kBlock, out += classes * kBlock) {
    for (int part = 0; part < kParts; ++part) {
      const int64_t first = k + part * kLanes;
      for (int64_t c = 0; c < classes; c += kLanes) {
        const int64_t n = least(kLanes, classes - c);
        Floats square[kLanes];
#pragma GCC unroll 16
        for (int i = 0; i < kLanes; ++i) {
          square[i] =
              first + i < inputs ? loadPartial(weights + (first + i) * classes + c, n) : Floats{};
        }
        transpose(square);
        float* const to = out + c * kBlock + part * kLanes;
#pragma GCC unroll 16
        for (int i = 0; i < kLanes; ++i) {
          if (i < n) store(to + i * kBlock, square[i] * s.scale);
        }
      }
    }
  }
}

// Pass 2 for a block of C classes from `first`.
template <int C, class X>
struct Forward {
  const X* x;
  int64_t inputs;
  const float* weights;  // of the first class, in block 0
  int64_t block_stride;  // distance of two blocks of weights
  const float* bias;
  float* rows_out;  // the rows as floats
  int64_t row_stride;
  float* logits;  // of the first class, in group 0
  int64_t group_stride;

  // One block of R rows: `from` and `to` are the first row's; rows are `stride` and `to_stride`
  // apart.
  template <int R>
  static DTF_INLINE void block(const X* from, int64_t stride, const float* w, float* to,
                               int64_t to_stride, Floats (&acc)[R][C]) {
    Floats in[R];
#pragma GCC unroll 2
    for (int r = 0; r < R; ++r) {
      in[r] = loadInputs(from + r * stride);
      store(to + r * to_stride, in[r]);
    }
#pragma GCC unroll 10
    for (int c = 0; c < C; ++c) {
      const Floats weight = load(w + c * kBlock);
#pragma GCC unroll 2
      for (int r = 0; r < R; ++r) acc[r][c] = fma(in[r], weight, acc[r][c]);
    }
  }

  template <int R>
  DTF_INLINE void rows(int64_t row) const {
    alignas(64) float sums[R][C][kBlock];
    const int64_t stride = inputs, to_stride = row_stride, w_stride = block_stride;
    const int64_t full = inputs / kBlock;
    for (int part = 0; part < kParts; ++part) {
      Floats acc[R][C] = {};
      const X* from = x + row * stride + part * kLanes;
      const float* w = weights + part * kLanes;
      float* to = rows_out + row * to_stride + part * kLanes;
      for (int64_t b = 0; b < full; ++b) {
        block<R>(from, stride, w, to, to_stride, acc);
        from += kBlock, w += w_stride, to += kBlock;
      }
      if (full * kBlock < inputs) tail<R>(from - part * kLanes, part, w, to, acc);
      for (int r = 0; r < R; ++r) {
#pragma GCC unroll 10
        for (int c = 0; c < C; ++c) store(sums[r][c] + part * kLanes, acc[r][c]);
      }
    }
    for (int r = 0; r < R; ++r) {
      float* const z = logits + (row + r) / kBlock * group_stride + (row + r) % kBlock;
#pragma GCC unroll 10
      for (int c = 0; c < C; ++c) z[c * kBlock] = sum(sums[r][c]) + bias[c];
    }
  }

  // The last, partial block: `from` is its first input.
  template <int R>
  void tail(const X* from, int part, const float* w, float* to, Floats (&acc)[R][C]) const {
    X padded[R][kBlock] = {};
    for (int r = 0; r < R; ++r) {
      for (int64_t k = 0; k < inputs % kBlock; ++k) padded[r][k] = from[r * inputs + k];
    }
    block<R>(padded[0] + part * kLanes, kBlock, w, to, row_stride, acc);
  }

  void run(int64_t begin, int64_t end) const {
    constexpr int kRows = kLanes == 16 ? 2 : 1;  // kRows * C registers accumulate
    static_assert(kFusedSoftmaxRows % kRows == 0);
    int64_t row = begin;
    for (; row + kRows <= end; row += kRows) rows<kRows>(row);
    for (; row < end; ++row) rows<1>(row);
  }
};

// Pass 3 for the rows of one register: `z` is the logits of class 0, `n` <= kLanes rows are in the
// batch. Returns the number of rows with their largest logit at the label.
DTF_INLINE int64_t softmaxLanes(float* z, int64_t classes, const int32_t* labels, int64_t n,
                                float gradient_scale, float* losses) {
  Floats max = load(z);
  IntsOf<Floats> best = {};
  for (int64_t c = 1; c < classes; ++c) {
    const Floats v = load(z + c * kBlock);
    best = v > max ? IntsOf<Floats>{} + static_cast<int32_t>(c) : best;
    max = maximum(max, v);
  }
  float of_label[kLanes] = {};
  int64_t hits = 0;
  for (int64_t i = 0; i < n; ++i) {
    of_label[i] = z[labels[i] * kBlock + i];
    hits += best[i] == labels[i];
  }
  Floats e[kFusedSoftmaxClassesMax];
  Floats total = {};
  for (int64_t c = 0; c < classes; ++c) {
    e[c] = exp(load(z + c * kBlock) - max);
    total += e[c];
  }
  store(losses, log(total) - (load(of_label) - max));
  for (int64_t c = 0; c < classes; ++c) {
    // Rows past the batch have no gradient.
    store(z + c * kBlock, Floats{});
    storePartial(z + c * kBlock, e[c] / total * gradient_scale, n);
  }
  for (int64_t i = 0; i < n; ++i) z[labels[i] * kBlock + i] -= gradient_scale;
  return hits;
}

void softmaxRows(const FusedSoftmaxStep& s, float* logits, float* losses) {
  int64_t hits = 0;
  for (int64_t row = 0; row < s.batch; row += kLanes) {
    float* const z = logits + row / kBlock * s.classes * kBlock + row % kBlock;
    hits += softmaxLanes(z, s.classes, s.labels + row, least(kLanes, s.batch - row),
                         s.gradient_scale, losses + row);
  }
  // Clears registers of the last group beyond the batch; reduceRows() adds up whole groups.
  for (int64_t row = (s.batch + kLanes - 1) / kLanes * kLanes; row % kBlock != 0; row += kLanes) {
    float* const z = logits + row / kBlock * s.classes * kBlock + row % kBlock;
    for (int64_t c = 0; c < s.classes; ++c) store(z + c * kBlock, Floats{});
  }
  if (s.accuracy != nullptr) *s.accuracy = static_cast<float>(hits) / static_cast<float>(s.batch);
}

// Pass 4 for a block of C classes.
template <int C>
struct Backward {
  const float* rows;  // as floats
  int64_t row_stride;
  const float* gradient;  // of the logits, of the first class, in group 0
  int64_t group_stride;
  int64_t batch;
  int64_t inputs;
  int64_t classes;
  float scale;
  float* out;  // of the first class, for input 0

  // V registers of inputs from `k`.
  template <int V>
  DTF_INLINE void inputsFrom(int64_t k) const {
    Floats acc[V][C] = {};
    const float* d = gradient;
    const float* from = rows + k;
    const int64_t stride = row_stride;
    for (int64_t left = batch; left > 0; left -= kBlock, d += group_stride) {
      const int64_t n = least(left, kBlock);
      for (int64_t row = 0; row < n; ++row, from += stride) {
        Floats in[V];
#pragma GCC unroll 2
        for (int v = 0; v < V; ++v) in[v] = load(from + v * kLanes);
#pragma GCC unroll 10
        for (int c = 0; c < C; ++c) {
          const Floats weight = splat(d[c * kBlock + row]);
#pragma GCC unroll 2
          for (int v = 0; v < V; ++v) acc[v][c] = fma(in[v], weight, acc[v][c]);
        }
      }
    }
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) write(acc[v], k + v * kLanes);
  }

  // Transposes kLanes inputs of C classes into place.
  DTF_INLINE void write(const Floats (&acc)[C], int64_t k) const {
#pragma GCC unroll 4
    for (int c0 = 0; c0 < C; c0 += kLanes) {
      Floats square[kLanes] = {};
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) {
        if (c0 + i < C) square[i] = acc[c0 + i] * scale;
      }
      transpose(square);
      float* const to = out + k * classes + c0;
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) {
        if (k + i < inputs) storePartial(to + i * classes, square[i], least(kLanes, C - c0));
      }
    }
  }

  void run(int64_t begin, int64_t end) const {
    constexpr int kTogether = kLanes == 16 ? 2 : 1;  // kTogether * C registers accumulate
    static_assert(kFusedSoftmaxInputs % (kTogether * kLanes) == 0);
    int64_t k = begin;
    for (; k + kTogether * kLanes <= end; k += kTogether * kLanes) inputsFrom<kTogether>(k);
    for (; k < end; k += kLanes) inputsFrom<1>(k);
  }
};

// Calls f.operator()<C>(first) for blocks of at most kClassBlockMax classes that cover all classes.
template <int C, class F>
DTF_INLINE void dispatchClasses(int64_t count, int64_t first, const F& f) {
  if (count == C) {
    f.template operator()<C>(first);
  } else if constexpr (C > 1) {
    dispatchClasses<C - 1>(count, first, f);
  }
}
template <class F>
DTF_INLINE void forClassBlocks(int64_t classes, const F& f) {
  const int64_t count = classes <= kClassBlockMax ? classes : (classes + 1) / 2;
  dispatchClasses<kClassBlockMax>(count, 0, f);
  if (count < classes) dispatchClasses<kClassBlockMax>(classes - count, count, f);
}

template <class X>
void forward(const FusedSoftmaxStep& s, const FusedSoftmaxWorkspace& at, const X* x, int64_t begin,
             int64_t end) {
  float* const work = s.workspace;
  forClassBlocks(s.classes, [&]<int C>(int64_t first) {
    const Forward<C, X> pass = {x,
                                s.inputs,
                                work + at.weights + first * kBlock,
                                s.classes * kBlock,
                                s.bias + first,
                                work + at.rows,
                                at.row_stride,
                                work + at.logits + first * kBlock,
                                s.classes * kBlock};
    pass.run(begin, end);
  });
}

// Pass 4 for some inputs.
void gradient(const FusedSoftmaxStep& s, const FusedSoftmaxWorkspace& at, int64_t begin,
              int64_t end) {
  forClassBlocks(s.classes, [&]<int C>(int64_t first) {
    const Backward<C> pass = {s.workspace + at.rows,
                              at.row_stride,
                              s.workspace + at.logits + first * kBlock,
                              s.classes * kBlock,
                              s.batch,
                              s.inputs,
                              s.classes,
                              s.scale,
                              s.weights_gradient + first};
    pass.run(begin, end);
  });
}

void reduceRows(const FusedSoftmaxStep& s, const float* gradient, const float* losses) {
  if (s.bias_gradient != nullptr) {
    for (int64_t c = 0; c < s.classes; ++c) {
      Wide total = {};
      for (int64_t row = 0; row < s.batch; row += kBlock) {
        total += load<Wide>(gradient + (row / kBlock * s.classes + c) * kBlock);
      }
      float lanes[kBlock];
      store(lanes, total);
      s.bias_gradient[c] = sum(lanes);
    }
  }
  if (s.logits_gradient != nullptr) {
    for (int64_t row = 0; row < s.batch; ++row) {
      const float* const from = gradient + row / kBlock * s.classes * kBlock + row % kBlock;
      for (int64_t c = 0; c < s.classes; ++c) {
        s.logits_gradient[row * s.classes + c] = from[c * kBlock];
      }
    }
  }
  if (s.loss != nullptr) {
    double total = 0;
    for (int64_t row = 0; row < s.batch; ++row) total += losses[row];
    *s.loss = static_cast<float>(total / static_cast<double>(s.batch));
  }
}

void weights(const FusedSoftmaxStep& s, const FusedSoftmaxWorkspace& at) {
  transposeWeights(s, s.workspace + at.weights);
}

// Pass 2 for some rows.
void logits(const FusedSoftmaxStep& s, const FusedSoftmaxWorkspace& at, int64_t begin,
            int64_t end) {
  if (s.bytes != nullptr) return forward(s, at, s.bytes, begin, end);
  forward(s, at, s.floats, begin, end);
}

void softmax(const FusedSoftmaxStep& s, const FusedSoftmaxWorkspace& at) {
  float* const work = s.workspace;
  softmaxRows(s, work + at.logits, work + at.losses);
  reduceRows(s, work + at.logits, work + at.losses);
}

}  // namespace

const FusedSoftmaxPasses kFusedSoftmaxPasses = {weights, logits, softmax, gradient};

}  // namespace dtf::runtime::DTF_ISA
