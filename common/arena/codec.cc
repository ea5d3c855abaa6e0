#include "common/arena/codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "common/arena/codecs/bfloat16.h"
#include "common/arena/codecs/float32.h"
#include "common/arena/codecs/rows.h"
#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf::arena {

namespace {

struct KnownCodec {
  CodecKind kind;
  std::string_view name;
  std::unique_ptr<const ElementCodec> (*make)(uint64_t elements,
                                              std::span<const ElementRange> exact);
};

template <class Made>
std::unique_ptr<const ElementCodec> make(uint64_t elements, std::span<const ElementRange> exact) {
  return std::make_unique<Made>(elements, exact);
}

// A new codec is one more entry.
constexpr std::array kCodecs = {
    KnownCodec{CodecKind::kFloat32, Float32Codec::kName, make<Float32Codec>},
    KnownCodec{CodecKind::kBFloat16, BFloat16Codec::kName, make<BFloat16Codec>},
};

const KnownCodec& known(CodecKind kind) {
  const auto* const found = std::ranges::find(kCodecs, kind, &KnownCodec::kind);
  DTF_CHECK(found != kCodecs.end());
  return *found;
}

}  // namespace

std::vector<ElementRange> exactRanges(const ParameterLayout& layout, uint32_t ps_task) {
  std::vector<ElementRange> exact;
  for (const Slice& slice : layout.shards.at(ps_task).slices)
    if (layout.variables.at(slice.variable).momentum)
      exact.push_back({slice.offset, slice.offset + slice.count});
  std::ranges::sort(exact, {}, &ElementRange::begin);
  return exact;
}

void Codec::requireSize(std::span<const std::byte> from, uint64_t bytes) {
  if (from.size() != bytes)
    throw Error(ErrorCode::kBadData,
                fmt::format("encoded values of {} bytes instead of {}", from.size(), bytes));
}

std::unique_ptr<const ElementCodec> makeCodec(CodecKind kind, uint64_t elements,
                                              std::span<const ElementRange> exact) {
  return known(kind).make(elements, exact);
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
