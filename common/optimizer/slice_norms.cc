#include "common/optimizer/slice_norms.h"

#include <algorithm>
#include <cmath>

#include "common/base/check.h"
#include "common/optimizer/gradient_math.h"
#include "common/optimizer/optimizer_kernels.h"

namespace dtf::optimizer {

namespace {

using Kind = cluster::OptimizerSpec::Kind;

uint64_t chunksOf(uint64_t elements) {
  return (elements + kChunkElements - 1) / kChunkElements;
}

}  // namespace

float trustRatio(const UpdateConstants& c, double parameter_norm, double update_norm) {
  if (!(parameter_norm > 0) || !(update_norm > 0)) return 1;
  if (c.kind == Kind::kLamb) return static_cast<float>(parameter_norm / update_norm);
  const double divisor = update_norm + double{c.weight_decay} * parameter_norm + double{c.epsilon};
  return static_cast<float>(double{c.eeta} * parameter_norm / divisor);
}

SliceNorms::SliceNorms(std::span<const arena::Slice> slices, uint64_t elements) {
  size_t chunks = 0;
  uint64_t free_from = 0;
  for (const arena::Slice& slice : slices) {
    DTF_CHECK(slice.begin == 0 && slice.offset >= free_from);
    DTF_CHECK(slice.offset <= elements && slice.count <= elements - slice.offset);
    free_from = slice.offset + slice.count;
    segments_.push_back({slice.offset, slice.offset + slice.count, elements, chunks, 1});
    chunks += chunksOf(slice.count);
  }
  // Elements before the first variable, if any, are padding.
  if (segments_.empty() || segments_[0].begin > 0) segments_.insert(segments_.begin(), Segment{});
  for (size_t i = 0; i + 1 < segments_.size(); ++i) segments_[i].next = segments_[i + 1].begin;
  segments_.back().next = elements;
  chunks_.resize(chunks);
}

size_t SliceNorms::segmentOf(uint64_t element) const {
  const auto after = std::ranges::upper_bound(segments_, element, {}, &Segment::begin);
  return static_cast<size_t>(after - segments_.begin()) - 1;
}

void SliceNorms::measure(const UpdateConstants& c, const UpdateArrays& arrays, uint64_t begin,
                         uint64_t end) {
  DTF_CHECK(begin <= end && end <= segments_.back().next);
  alignas(64) float gradient[kChunkElements];
  alignas(64) float direction[kChunkElements];
  for (size_t i = segmentOf(begin); i < segments_.size() && segments_[i].begin < end; ++i) {
    const Segment& segment = segments_[i];
    // The first chunk that begins at `begin` or later.
    uint64_t chunk = begin <= segment.begin ? 0 : chunksOf(begin - segment.begin);
    for (;; ++chunk) {
      const uint64_t at = segment.begin + chunk * kChunkElements;
      if (at >= std::min(end, segment.end)) break;
      const uint64_t n = std::min(kChunkElements, segment.end - at);
      const float* update = effectiveGradient(c, arrays, at, n, gradient);
      if (c.kind == Kind::kLamb) {
        lambDirection(c, kernelArrays(arrays, update, at, n), direction);
        update = direction;
      }
      chunks_[segment.first_chunk + chunk] = {sumOfSquares({arrays.old_parameters + at, n}),
                                              sumOfSquares({update, n})};
    }
  }
}

void SliceNorms::finish(const UpdateConstants& constants) {
  for (Segment& segment : segments_) {
    Sums sums;
    for (uint64_t i = 0; i < chunksOf(segment.end - segment.begin); ++i) {
      sums.parameters += chunks_[segment.first_chunk + i].parameters;
      sums.updates += chunks_[segment.first_chunk + i].updates;
    }
    segment.trust_ratio =
        trustRatio(constants, std::sqrt(sums.parameters), std::sqrt(sums.updates));
  }
}

void SliceNorms::update(const UpdateConstants& constants, const UpdateArrays& arrays,
                        uint64_t begin, uint64_t end) const {
  DTF_CHECK(begin <= end && end <= segments_.back().next);
  UpdateConstants scaled = constants;
  while (begin < end) {
    const Segment& segment = segments_[segmentOf(begin)];
    const uint64_t stop = std::min(end, segment.next);
    scaled.trust_ratio = segment.trust_ratio;
    updateRange(scaled, arrays, begin, stop);
    begin = stop;
  }
}

}  // namespace dtf::optimizer
