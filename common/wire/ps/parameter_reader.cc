#include "common/wire/ps/parameter_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "common/arena/row_set.h"
#include "common/base/error.h"
#include "common/wire/arena_codec.h"
#include "common/wire/gradient_codec.h"

namespace dtf::wire {

float* ParameterReader::valuesOf(Buffer& arena) const {
  const uint64_t bytes = codecs_.whole().elements() * sizeof(float);
  if (arena.bytes() != bytes) arena = Buffer(bytes);
  return arena.as<float>();
}

void ParameterReader::readWhole(capnp::List<capnp::Data>::Reader list, Buffer& arena) {
  const arena::ElementCodec& codec = codecs_.whole();
  uint64_t came = 0;
  for (const capnp::Data::Reader chunk : list) came += chunk.size();
  if (came == codec.elements() * sizeof(float) && came != codec.bytes())
    throw Error(ErrorCode::kBadConfig,
                fmt::format("{} sends float32 where 'transfer_dtype: {}' is declared: it is of a "
                            "version without it; start all tasks of the job from one",
                            peer_, codec.name()));
  Buffer chunks;  // used only for several that lie apart
  const std::span<const std::byte> encoded = readBytes(list, codec.bytes(), chunks);
  codec.decode(encoded, {}, valuesOf(arena));
}

void ParameterReader::readChange(capnp::List<capnp::Data>::Reader list, const float* base,
                                 Buffer& arena) {
  const arena::ChangeCodec& codec = *codecs_.change();
  const uint64_t rows = (codecs_.whole().elements() - codec.elements()) * sizeof(float);
  Buffer chunks;  // used only for several that lie apart
  const std::span<const std::byte> came = readBytes(list, codec.bytes() + rows, chunks);
  float* const values = valuesOf(arena);
  codec.applyChange(came.first(codec.bytes()), base, values);
  if (rows > 0) std::memcpy(values + codec.elements(), came.data() + codec.bytes(), rows);
}

void ParameterReader::readRows(capnp::List<capnp::Data>::Reader list,
                               capnp::List<uint32_t>::Reader counts, const arena::RowSet& wanted,
                               const float* base, Buffer& arena) {
  bool are_counted = counts.size() == wanted.counts.size();
  for (uint32_t i = 0; are_counted && i < counts.size(); ++i)
    are_counted = counts[i] == wanted.counts[i];
  const arena::RowsCodec* const alone = codecs_.rowsAlone();
  if (alone == nullptr || wanted.isWhole() || !are_counted)
    throw Error(ErrorCode::kBadData, peer_ + " sent rows that were not requested");
  const uint64_t elements = alone->elements(wanted.counts);
  const uint64_t dense = base != nullptr ? codecs_.change()->bytes() : codecs_.dense().bytes();
  Buffer chunks;  // used only for several that lie apart
  const std::span<const std::byte> came =
      readBytes(list, dense + alone->bytes(wanted.counts), chunks);
  const auto* rows = reinterpret_cast<const float*>(came.data() + dense);
  if (!alone->isIdentity()) {
    if (rows_.bytes() < elements * sizeof(float))
      rows_ = Buffer(std::min(2 * elements, alone->layout().elementsMax()) * sizeof(float));
    alone->decode(came.subspan(dense), wanted.counts, rows_.as<float>());
    rows = rows_.as<float>();
  }
  const arena::Gradient gradient{{rows, elements}, nullptr, wanted.counts};
  for (size_t i = 0; i < wanted.counts.size(); ++i)
    if (!std::ranges::equal(alone->layout().rows(gradient, i).rows, wanted.of(i)))
      throw Error(ErrorCode::kBadData, peer_ + " sent rows that were not requested");
  float* const values = valuesOf(arena);
  if (base != nullptr)
    codecs_.change()->applyChange(came.first(dense), base, values);
  else
    codecs_.dense().decode(came.first(dense), {}, values);
  arena::scatterRows(layout_, gradient, values);
}

}  // namespace dtf::wire
