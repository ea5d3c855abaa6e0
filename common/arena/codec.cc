#include "common/arena/codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "common/arena/codecs/bfloat16.h"
#include "common/arena/codecs/float32.h"
#include "common/arena/codecs/int8.h"
#include "common/arena/codecs/rows.h"
#include "common/arena/codecs/top_k.h"
#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf::arena {

namespace {

struct KnownCodec {
  CodecKind kind;
  std::string_view name;
  std::unique_ptr<const ElementCodec> (*make)(const CodecSpec& codec, uint64_t elements,
                                              const ShardRanges& ranges);
};

// Returns the shorter list: ranges that begin before `elements`.
std::vector<ElementRange> before(uint64_t elements, const std::vector<ElementRange>& ranges) {
  std::vector<ElementRange> first;
  for (const ElementRange& range : ranges) {
    if (range.begin >= elements) break;
    DTF_CHECK(range.end <= elements);
    first.push_back(range);
  }
  return first;
}

std::unique_ptr<const ElementCodec> makeFloat32(const CodecSpec&, uint64_t elements,
                                                const ShardRanges&) {
  return std::make_unique<Float32Codec>(elements);
}
std::unique_ptr<const ElementCodec> makeBFloat16(const CodecSpec&, uint64_t elements,
                                                 const ShardRanges& ranges) {
  return std::make_unique<BFloat16Codec>(elements, ranges.exact);
}
std::unique_ptr<const ElementCodec> makeLossy(const CodecSpec& codec, uint64_t elements,
                                              const ShardRanges& ranges) {
  return makeChangeCodec(codec, elements, ranges);
}

// A new codec is one more entry.
constexpr std::array kCodecs = {
    KnownCodec{CodecKind::kFloat32, Float32Codec::kName, makeFloat32},
    KnownCodec{CodecKind::kBFloat16, BFloat16Codec::kName, makeBFloat16},
    KnownCodec{CodecKind::kInt8, Int8Codec::kName, makeLossy},
    KnownCodec{CodecKind::kTopK, TopKCodec::kName, makeLossy},
};

const KnownCodec& known(CodecKind kind) {
  const auto* const found = std::ranges::find(kCodecs, kind, &KnownCodec::kind);
  DTF_CHECK(found != kCodecs.end());
  return *found;
}

}  // namespace

CodecSpec codecOf(const cluster::ReplicationSpec& replication) {
  return {replication.transfer_dtype, replication.transfer_top_k};
}

ShardRanges rangesOf(const CodecSpec& codec, const ParameterLayout& layout, uint32_t ps_task) {
  ShardRanges ranges;
  for (const Slice& slice : layout.shards.at(ps_task).slices) {
    const VariableInfo& variable = layout.variables.at(slice.variable);
    if (variable.is_sparse || slice.count == 0) continue;
    const bool is_small = codec.isLossy() && variable.shape.elements() < kLossyFromElements;
    std::vector<ElementRange>& list = variable.momentum || is_small ? ranges.exact : ranges.slices;
    list.push_back({slice.offset, slice.offset + slice.count});
  }
  std::ranges::sort(ranges.exact, {}, &ElementRange::begin);
  std::ranges::sort(ranges.slices, {}, &ElementRange::begin);
  return ranges;
}

void Codec::requireSize(std::span<const std::byte> from, uint64_t bytes) {
  if (from.size() != bytes)
    throw Error(ErrorCode::kBadData,
                fmt::format("encoded values of {} bytes instead of {}", from.size(), bytes));
}

std::unique_ptr<const ElementCodec> makeCodec(const CodecSpec& codec, uint64_t elements,
                                              const ShardRanges& ranges) {
  return known(codec.kind).make(codec, elements, ranges);
}

std::unique_ptr<const ChangeCodec> makeChangeCodec(const CodecSpec& codec, uint64_t elements,
                                                   const ShardRanges& ranges) {
  DTF_CHECK(codec.isLossy());
  const ShardRanges here{before(elements, ranges.exact), before(elements, ranges.slices)};
  if (codec.kind == CodecKind::kInt8) return std::make_unique<Int8Codec>(elements, here);
  return std::make_unique<TopKCodec>(codec.top_k, elements, here);
}

std::string_view codecName(CodecKind kind) {
  return known(kind).name;
}

std::vector<std::string_view> codecNames() {
  std::vector<std::string_view> names;
  for (const KnownCodec& codec : kCodecs) names.push_back(codec.name);
  names.push_back(RowsCodec::kName);
  return names;
}

}  // namespace dtf::arena
