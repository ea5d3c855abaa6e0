#include "common/arena/shard_codecs.h"

namespace dtf::arena {

ShardCodecs::ShardCodecs(const CodecSpec& codec, uint64_t elements, const GradientLayout& layout,
                         const ShardRanges& ranges) {
  const uint64_t dense = layout.sparse().empty() ? elements : layout.denseElements();
  const CodecSpec of_parameters = codec.isLossy() ? CodecSpec{} : codec;
  whole_ = makeCodec(of_parameters, elements, ranges);
  if (codec.isLossy()) change_ = makeChangeCodec(codec, dense, ranges);
  if (layout.sparse().empty()) return;
  dense_ = makeCodec(of_parameters, dense, ranges);
  rows_ = std::make_unique<RowsCodec>(layout, makeCodec(codec, dense, ranges));
  rows_alone_ = std::make_unique<RowsCodec>(layout.rowsAlone(), makeCodec(of_parameters, 0, {}));
}

ShardCodecs::ShardCodecs(const CodecSpec& codec, const ParameterLayout& layout, uint32_t ps_task)
    : ShardCodecs(codec, layout.shards.at(ps_task).elements, GradientLayout(layout, ps_task),
                  rangesOf(codec, layout, ps_task)) {}

}  // namespace dtf::arena
