#include "common/runtime/norm_loops.h"

#include <string>

#include "common/base/check.h"
#include "common/runtime/norm_loops_isa.h"
#include "common/runtime/processor.h"

namespace dtf::runtime {

const NormLoops& normLoops(Isa isa) {
  DTF_CHECK_MSG(isa <= bestIsa(), std::string(isaName(isa)));
#if defined(__x86_64__)
  if (isa == Isa::kV4) return v4::kNormLoops;
  if (isa == Isa::kV3) return v3::kNormLoops;
#endif
  return baseline::kNormLoops;
}

namespace {

int64_t blocksOf(int64_t rows) {
  return (rows + kNormBlockRows - 1) / kNormBlockRows;
}

template <class F>
void forBlocks(const Processor& cpu, int64_t rows, int64_t channels, const F& f) {
  DTF_CHECK(rows >= 0 && channels > 0);
  cpu.forRanges(blocksOf(rows), kNormBlockRows * channels * kCopiedWork,
                [&](int64_t begin, int64_t end, int) { f(begin, end); });
}

template <class F>
void forNormRows(const Processor& cpu, int64_t rows, int64_t channels, const F& f) {
  cpu.forRanges(rows, channels * kCopiedWork,
                [&](int64_t begin, int64_t end, int) { f(begin, end); });
}

// Computes either kind of gradient: sums over blocks of rows, then the gradients of scale and
// offset, then dx.
void normGrad(const Processor& cpu, const NormGradient& g, float* sums,
              void (*block_sums)(const NormGradient&, int64_t, int64_t, float*),
              void (*of_scale)(const NormGradient&, const float*),
              void (*of_rows)(const NormGradient&, int64_t, int64_t)) {
  forBlocks(cpu, g.rows, g.channels,
            [&](int64_t begin, int64_t end) { block_sums(g, begin, end, sums); });
  of_scale(g, sums);
  forNormRows(cpu, g.rows, g.channels, [&](int64_t begin, int64_t end) { of_rows(g, begin, end); });
}

}  // namespace

size_t normSumsBytes(int64_t rows, int64_t channels) {
  return static_cast<size_t>(blocksOf(rows) * kNormTerms * channels) * sizeof(float);
}

void batchNorm(const Processor& cpu, const NormInput& in, const NormOutput& out, float* sums) {
  const NormLoops& loops = normLoops(cpu.isa);
  const auto sum = [&](const float* mean) {
    forBlocks(cpu, in.rows, in.channels,
              [&](int64_t begin, int64_t end) { loops.batchSums(in, mean, begin, end, sums); });
  };
  sum(nullptr);
  loops.batchMean(in, sums, out.mean);
  sum(out.mean);
  loops.batchVariance(in, sums, out);
  forNormRows(cpu, in.rows, in.channels,
              [&](int64_t begin, int64_t end) { loops.batch(in, out, begin, end); });
}

void batchNormInference(const Processor& cpu, const NormInput& in, const float* mean,
                        const float* variance, float* y) {
  forNormRows(cpu, in.rows, in.channels, [&](int64_t begin, int64_t end) {
    normLoops(cpu.isa).batchInference(in, mean, variance, y, begin, end);
  });
}

void batchNormGrad(const Processor& cpu, const NormGradient& g, float* sums) {
  const NormLoops& loops = normLoops(cpu.isa);
  normGrad(cpu, g, sums, loops.batchGradSums, loops.batchGradOfScale, loops.batchGrad);
}

void layerNorm(const Processor& cpu, const NormInput& in, const NormOutput& out) {
  forNormRows(cpu, in.rows, in.channels,
              [&](int64_t begin, int64_t end) { normLoops(cpu.isa).layer(in, out, begin, end); });
}

void layerNormGrad(const Processor& cpu, const NormGradient& g, float* sums) {
  const NormLoops& loops = normLoops(cpu.isa);
  normGrad(cpu, g, sums, loops.layerGradSums, loops.layerGradOfScale, loops.layerGrad);
}

}  // namespace dtf::runtime
