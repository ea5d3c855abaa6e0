#pragma once

// Parameter and gradient arenas as lists of chunks that refer to the sender's memory. The sender
// copies nothing, and the receiver uses the arena where the socket has put it.

#include <capnp/orphan.h>

#include <cstdint>
#include <memory>
#include <span>

#include "common/net/message_stream.h"
#include "common/shard/declaration.h"
#include "common/tensor/buffer.h"

namespace dtf::wire {

// Cap'n Proto's bound for one blob is 512 MiB - 1.
inline constexpr uint64_t kChunkBytesMax = uint64_t{256} << 20;

// Bytes of a message beside its arena. The limit of a connection is the arena plus this.
inline constexpr uint64_t kMessageOverheadBytes = uint64_t{1} << 20;

// Returns the number of blobs of an arena. `chunk_bytes`, here and below: the size of each blob but
// the last, an option of the link (a multiple of 8, at most kChunkBytesMax).
uint32_t arenaChunks(uint64_t elements, uint64_t chunk_bytes = kChunkBytesMax);
uint32_t chunksOf(uint64_t bytes, uint64_t chunk_bytes = kChunkBytesMax);

// Segments of a message beside the chunks of its arena: the message itself, which has only a few.
inline constexpr uint32_t kSegmentsBeside = 16;
static_assert(shard::kShardElementsMax * sizeof(float) / kChunkBytesMax + kSegmentsBeside <= 512,
              "Cap'n Proto reads no message of more segments");

// Returns the limits of the messages on a bulk connection, for a shard of `elements`.
net::Limits arenaLimits(uint64_t elements, uint64_t chunk_bytes = kChunkBytesMax);

// Fills `list` (made with arenaChunks(arena.size(), chunk_bytes) entries) with references to
// `arena`, whose memory `owner` keeps alive until the message is with the kernel. The size must be
// a multiple of two elements (capnp sends words). `gate`: of an arena that is still being written,
// see MessageStream::sendAsWritten(); null: it is whole.
void referenceArena(std::span<const float> arena, const std::shared_ptr<const void>& owner,
                    capnp::List<capnp::Data>::Builder list, net::MessageStream& stream,
                    uint64_t chunk_bytes = kChunkBytesMax,
                    const std::shared_ptr<const net::SendGate>& gate = nullptr);

// The same for an arena that isn't of float32 (arena/codecs/bfloat16.h), of a multiple of 8 bytes:
// `list` was made with chunksOf(bytes.size(), chunk_bytes).
void referenceBytes(std::span<const std::byte> bytes, const std::shared_ptr<const void>& owner,
                    capnp::List<capnp::Data>::Builder list, net::MessageStream& stream,
                    uint64_t chunk_bytes = kChunkBytesMax,
                    const std::shared_ptr<const net::SendGate>& gate = nullptr);

// The same for an arena that lies in several places: its parts, one after another. `list` was made
// with the sum of their chunksOf().
struct ArenaPart {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};
void referenceParts(std::span<const ArenaPart> parts, capnp::List<capnp::Data>::Builder list,
                    net::MessageStream& stream, uint64_t chunk_bytes = kChunkBytesMax);

// Returns the arena in `list`: in place if its chunks are contiguous, as this sender makes them,
// otherwise copied into `assembled`.
// Errors: kBadData unless there are exactly `elements` elements.
std::span<const float> readArena(capnp::List<capnp::Data>::Reader list, uint64_t elements,
                                 Buffer& assembled);
// The same for an arena of exactly `bytes`, aligned to 4.
std::span<const std::byte> readBytes(capnp::List<capnp::Data>::Reader list, uint64_t bytes,
                                     Buffer& assembled);

// An arena that outlives its message, and may be released by any thread.
struct KeptArena {
  std::span<const float> values;
  std::shared_ptr<const void> owner;
};
// Returns the arena in `list`, which came on `stream`: in its receive buffer if it is large,
// otherwise as a copy.
// Errors: as readArena().
KeptArena keepArena(capnp::List<capnp::Data>::Reader list, uint64_t elements,
                    net::MessageStream& stream);

}  // namespace dtf::wire
