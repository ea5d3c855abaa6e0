#include "common/wire/parameter_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/error.h"
#include "common/ps/row_set.h"
#include "common/wire/arena_codec.h"
#include "common/wire/gradient_codec.h"

namespace dtf::wire {

namespace {

std::optional<ps::GradientLayout> rowsOf(const ps::GradientLayout& layout) {
  if (layout.sparse().empty()) return std::nullopt;
  return layout.rowsAlone();
}

}  // namespace

ParameterReader::ParameterReader(std::string peer, ps::GradientLayout layout, uint64_t elements,
                                 bool narrows, std::span<const ps::ElementRange> exact)
    : peer_(std::move(peer)),
      layout_(std::move(layout)),
      alone_(rowsOf(layout_)),
      elements_(elements),
      narrows_(narrows),
      all_(elements, exact),
      dense_(layout_.denseElements(), exact) {}

float* ParameterReader::valuesOf(Buffer& arena) const {
  if (arena.bytes() != elements_ * sizeof(float)) arena = Buffer(elements_ * sizeof(float));
  return arena.as<float>();
}

void ParameterReader::readNarrow(capnp::List<capnp::Data>::Reader list, Buffer& arena) {
  uint64_t came = 0;
  for (const capnp::Data::Reader chunk : list) came += chunk.size();
  if (came == elements_ * sizeof(float) && came != all_.bytes())
    throw Error(ErrorCode::kBadConfig,
                peer_ +
                    " sends float32 where 'transfer_dtype: bfloat16' is declared: it is of a "
                    "version without it; start all tasks of the job from one");
  Buffer chunks;  // used only for several that lie apart
  const std::span<const std::byte> narrow = readBytes(list, all_.bytes(), chunks);
  all_.widen(narrow.data(), valuesOf(arena));
}

void ParameterReader::readRows(capnp::List<capnp::Data>::Reader list,
                               capnp::List<uint32_t>::Reader counts, const ps::RowSet& wanted,
                               Buffer& arena) {
  bool are_counted = counts.size() == wanted.counts.size();
  for (uint32_t i = 0; are_counted && i < counts.size(); ++i)
    are_counted = counts[i] == wanted.counts[i];
  if (!alone_ || wanted.isWhole() || !are_counted)
    throw Error(ErrorCode::kBadData, peer_ + " sent rows that were not requested");
  const uint64_t elements = alone_->elementsOf(wanted.counts);
  const uint64_t dense = narrows_ ? dense_.bytes() : layout_.denseElements() * sizeof(float);
  const uint64_t bytes =
      narrows_ ? ps::narrowRowsBytes(*alone_, wanted.counts) : elements * sizeof(float);
  Buffer chunks;  // used only for several that lie apart
  const std::span<const std::byte> came = readBytes(list, dense + bytes, chunks);
  const auto* rows = reinterpret_cast<const float*>(came.data() + dense);
  if (narrows_) {
    if (rows_.bytes() < elements * sizeof(float))
      rows_ = Buffer(std::min(2 * elements, alone_->elementsMax()) * sizeof(float));
    ps::widenRows(*alone_, wanted.counts, came.data() + dense, rows_.as<float>());
    rows = rows_.as<float>();
  }
  const ps::Gradient gradient{{rows, elements}, nullptr, wanted.counts};
  for (size_t i = 0; i < wanted.counts.size(); ++i)
    if (!std::ranges::equal(alone_->rows(gradient, i).rows, wanted.of(i)))
      throw Error(ErrorCode::kBadData, peer_ + " sent rows that were not requested");
  float* const values = valuesOf(arena);
  if (narrows_)
    dense_.widen(came.data(), values);
  else if (dense > 0)
    std::memcpy(values, came.data(), dense);
  ps::scatterRows(layout_, gradient, values);
}

}  // namespace dtf::wire
