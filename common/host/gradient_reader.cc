#include "common/host/gradient_reader.h"

#include <cstring>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/wire/arena_codec.h"
#include "common/wire/gradient_codec.h"

namespace dtf::host {

arena::Gradient GradientReader::read(capnp::List<capnp::Data>::Reader chunks, uint64_t elements) {
  DTF_CHECK(connection_->connection != nullptr);
  auto assembled = std::make_shared<Buffer>();  // used only for a gradient of several chunks
  const std::span<const float> values = wire::readArena(chunks, elements, *assembled);
  if (values.empty()) return {};
  if (values.data() == assembled->as<float>()) return {values, assembled};
  // A large gradient stays in its receive buffer; a small one is copied out of the shared one.
  if (auto owner = connection_->connection->stream().pin(values.data())) return {values, owner};
  const std::shared_ptr<Buffer> copy = staging_.take(values.size_bytes());
  std::memcpy(copy->data(), values.data(), values.size_bytes());
  return {{copy->as<float>(), values.size()}, copy};
}

arena::Gradient GradientReader::read(capnp::List<capnp::Data>::Reader chunks,
                                     capnp::List<uint32_t>::Reader rows,
                                     const arena::GradientLayout& layout) {
  std::vector<uint32_t> counts = wire::decodeRowCounts(rows, layout);
  arena::Gradient gradient = read(chunks, layout.elementsOf(counts));
  gradient.row_counts = std::move(counts);
  return gradient;
}

arena::Gradient GradientReader::read(capnp::List<capnp::Data>::Reader chunks,
                                     capnp::List<uint32_t>::Reader rows,
                                     const arena::GradientLayout& layout,
                                     const arena::Codec& codec) {
  if (codec.isIdentity()) return read(chunks, rows, layout);
  std::vector<uint32_t> counts = wire::decodeRowCounts(rows, layout);
  Buffer assembled;  // used only for a gradient of several chunks
  const std::span<const std::byte> encoded =
      wire::readBytes(chunks, codec.bytes(counts), assembled);
  const uint64_t elements = codec.elements(counts);
  const std::shared_ptr<Buffer> values = staging_.take(elements * sizeof(float));
  codec.decode(encoded, counts, values->as<float>());
  return {{values->as<float>(), elements}, values, std::move(counts)};
}

}  // namespace dtf::host
