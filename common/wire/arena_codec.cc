#include "common/wire/arena_codec.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf::wire {

uint32_t arenaChunks(uint64_t elements, uint64_t chunk_bytes) {
  DTF_CHECK(elements <= shard::kShardElementsMax);
  return chunksOf(elements * sizeof(float), chunk_bytes);
}

uint32_t chunksOf(uint64_t bytes, uint64_t chunk_bytes) {
  DTF_CHECK(chunk_bytes > 0 && chunk_bytes % sizeof(capnp::word) == 0 &&
            chunk_bytes <= kChunkBytesMax);
  return static_cast<uint32_t>((bytes + chunk_bytes - 1) / chunk_bytes);
}

net::Limits arenaLimits(uint64_t elements, uint64_t chunk_bytes) {
  return {.bytes_max = elements * sizeof(float) + kMessageOverheadBytes,
          .segments_max = arenaChunks(elements, chunk_bytes) + kSegmentsBeside};
}

void referenceArena(std::span<const float> arena, const std::shared_ptr<const void>& owner,
                    capnp::List<capnp::Data>::Builder list, net::MessageStream& stream,
                    uint64_t chunk_bytes, const std::shared_ptr<const net::SendGate>& gate) {
  referenceBytes(std::as_bytes(arena), owner, list, stream, chunk_bytes, gate);
}

namespace {

// Puts the chunks of `part` into `list`, from entry `at` on; returns the entry behind them.
uint32_t reference(const ArenaPart& part, capnp::List<capnp::Data>::Builder list, uint32_t at,
                   net::MessageStream& stream, uint64_t chunk_bytes,
                   const std::shared_ptr<const net::SendGate>& gate = nullptr) {
  DTF_CHECK(part.bytes.size() % sizeof(capnp::word) == 0);
  const auto* bytes = reinterpret_cast<const kj::byte*>(part.bytes.data());
  auto orphanage = capnp::Orphanage::getForMessageContaining(list);
  for (uint64_t left = part.bytes.size(); left > 0;) {
    const uint64_t size = std::min(left, chunk_bytes);
    list.adopt(at++, orphanage.referenceExternalData(capnp::Data::Reader(bytes, size)));
    stream.keepUntilWritten(bytes, part.owner);
    if (gate != nullptr) stream.sendAsWritten(bytes, gate);
    bytes += size;
    left -= size;
  }
  return at;
}

}  // namespace

void referenceBytes(std::span<const std::byte> bytes, const std::shared_ptr<const void>& owner,
                    capnp::List<capnp::Data>::Builder list, net::MessageStream& stream,
                    uint64_t chunk_bytes, const std::shared_ptr<const net::SendGate>& gate) {
  const uint32_t end = reference({bytes, owner}, list, 0, stream, chunk_bytes, gate);
  DTF_CHECK(end == list.size());
}

void referenceParts(std::span<const ArenaPart> parts, capnp::List<capnp::Data>::Builder list,
                    net::MessageStream& stream, uint64_t chunk_bytes) {
  uint32_t end = 0;
  for (const ArenaPart& part : parts) end = reference(part, list, end, stream, chunk_bytes);
  DTF_CHECK(end == list.size());
}

std::span<const std::byte> readBytes(capnp::List<capnp::Data>::Reader list, uint64_t wanted,
                                     Buffer& assembled) {
  uint64_t bytes = 0;
  bool in_place = true;
  const kj::byte* end = nullptr;
  for (const capnp::Data::Reader chunk : list) {
    if (end != nullptr && chunk.begin() != end) in_place = false;
    end = chunk.end();
    bytes += chunk.size();
  }
  if (bytes != wanted)
    throw Error(ErrorCode::kBadData, "an arena of " + std::to_string(bytes) +
                                         " bytes came instead of the declared " +
                                         std::to_string(wanted));
  if (bytes == 0) return {};
  if (in_place && reinterpret_cast<uintptr_t>(list[0].begin()) % alignof(float) == 0)
    return {reinterpret_cast<const std::byte*>(list[0].begin()), bytes};
  if (assembled.bytes() != bytes) assembled = Buffer(bytes);
  std::byte* to = assembled.data();
  for (const capnp::Data::Reader chunk : list) {
    std::memcpy(to, chunk.begin(), chunk.size());
    to += chunk.size();
  }
  return {assembled.data(), bytes};
}

std::span<const float> readArena(capnp::List<capnp::Data>::Reader list, uint64_t elements,
                                 Buffer& assembled) {
  const std::span<const std::byte> bytes = readBytes(list, elements * sizeof(float), assembled);
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

KeptArena keepArena(capnp::List<capnp::Data>::Reader list, uint64_t elements,
                    net::MessageStream& stream) {
  auto assembled = std::make_shared<Buffer>();
  const std::span<const float> values = readArena(list, elements, *assembled);
  if (values.empty() || values.data() == assembled->as<float>()) return {values, assembled};
  if (std::shared_ptr<const void> owner = stream.pin(values.data())) return {values, owner};
  *assembled = Buffer(values.size_bytes());
  std::memcpy(assembled->data(), values.data(), values.size_bytes());
  return {{assembled->as<float>(), values.size()}, assembled};
}

}  // namespace dtf::wire
