#include "common/arena/shard_codecs.h"

namespace dtf::arena {

ShardCodecs::ShardCodecs(CodecKind kind, uint64_t elements, const GradientLayout& layout,
                         std::span<const ElementRange> exact)
    : whole_(makeCodec(kind, elements, exact)) {
  if (layout.sparse().empty()) return;
  rows_ = std::make_unique<RowsCodec>(layout, makeCodec(kind, layout.denseElements(), exact));
  rows_alone_ = std::make_unique<RowsCodec>(layout.rowsAlone(), makeCodec(kind, 0, {}));
}

ShardCodecs::ShardCodecs(CodecKind kind, const ParameterLayout& layout, uint32_t ps_task)
    : ShardCodecs(kind, layout.shards.at(ps_task).elements, GradientLayout(layout, ps_task),
                  exactRanges(layout, ps_task)) {}

}  // namespace dtf::arena
