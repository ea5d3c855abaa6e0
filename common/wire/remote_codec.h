#pragma once

// Arenas that a card reads and writes, to and from the schema.

#include <capnp/list.h>

#include <cstring>

#include "common/net/channels/remote_memory.h"
#include "common/wire/ps.capnp.h"

namespace dtf::wire {

inline capnp::Data::Reader dataOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()};
}

inline std::span<const std::byte> bytesOf(capnp::Data::Reader data) {
  return {reinterpret_cast<const std::byte*>(data.begin()), data.size()};
}

// The key travels in a field of its own.
inline void encodeRemoteArena(const net::RemoteArena& arena, schema::RemoteArena::Builder builder) {
  builder.setAddress(arena.address);
  builder.setBytes(arena.bytes);
  builder.setCardKey(dataOf(arena.card_key));
}

// The channel checks it: RemoteChannel::learn().
inline net::RemoteArena decodeRemoteArena(uint64_t key, schema::RemoteArena::Reader reader) {
  const std::span<const std::byte> card_key = bytesOf(reader.getCardKey());
  return {.key = key,
          .address = reader.getAddress(),
          .bytes = reader.getBytes(),
          .card_key = {card_key.begin(), card_key.end()}};
}

}  // namespace dtf::wire
