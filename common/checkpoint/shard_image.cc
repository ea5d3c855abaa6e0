#include "common/checkpoint/shard_image.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"

namespace dtf::checkpoint {

ShardImage::ShardImage(uint32_t ps_task, uint32_t ps_tasks, std::span<const TensorPart> parts) {
  uint64_t at = 0;
  file_ = streamShard(ps_task, ps_tasks, parts, [&](const char* data, uint64_t bytes) {
    if (at == 0)
      header_.assign(data, bytes);
    else if (!pieces_.empty() && pieces_.back().data + pieces_.back().bytes == data)
      pieces_.back().bytes += bytes;
    else
      pieces_.push_back({at, data, bytes});
    at += bytes;
  });
  DTF_CHECK(at == file_.bytes && !header_.empty());
}

void ShardImage::read(uint64_t offset, std::span<char> out) const {
  DTF_CHECK(offset <= file_.bytes && out.size() <= file_.bytes - offset);
  if (offset < header_.size()) {
    const size_t bytes = std::min<uint64_t>(out.size(), header_.size() - offset);
    std::memcpy(out.data(), header_.data() + offset, bytes);
    offset += bytes;
    out = out.subspan(bytes);
  }
  const auto behind = [](uint64_t wanted, const Piece& piece) { return wanted < piece.offset; };
  auto piece = std::upper_bound(pieces_.begin(), pieces_.end(), offset, behind);
  while (!out.empty()) {
    DTF_CHECK(piece != pieces_.begin());
    const Piece& holder = *std::prev(piece);
    const uint64_t skipped = offset - holder.offset;
    const size_t bytes = std::min<uint64_t>(out.size(), holder.bytes - skipped);
    std::memcpy(out.data(), holder.data + skipped, bytes);
    offset += bytes;
    out = out.subspan(bytes);
    ++piece;
  }
}

}  // namespace dtf::checkpoint
