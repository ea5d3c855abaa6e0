#pragma once

// A task's part of a plan to and from the schema. Decoding checks everything that a peer could lie
// about before it allocates or uses it.

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "common/engine/task_part.h"
#include "common/net/message_stream.h"
#include "common/wire/arena_codec.h"
#include "common/wire/parts.capnp.h"

namespace dtf::wire {

// Bounds of a part. Beyond them: an Error that names the bound and the node.
inline constexpr uint32_t kNodesMax = 100'000;
inline constexpr uint32_t kNameBytesMax = 4'096;        // of a node, an op, an attribute, a device
inline constexpr uint32_t kAttributesMax = 64;          // of a node
inline constexpr uint32_t kAttributeBytesMax = 16'384;  // of a text
inline constexpr uint32_t kInputsMax = 65'536;          // of a node, of each kind
inline constexpr uint32_t kDevicesMax = 256;
inline constexpr uint32_t kEdgesMax = 1'000'000;  // of a plan
// Of all tensors of a part together, each counted once.
inline constexpr uint64_t kPartBytesMax = uint64_t{64} << 30;

// The processes of a session: who is at the other end of an edge.
using Processes = std::map<TaskId, Incarnation>;

// `stream` will write the message, and keeps `part` until it has. Every peer of an edge is one of
// `processes`.
void encodePart(const std::shared_ptr<const engine::TaskPart>& part, const Processes& processes,
                net::MessageStream& stream, schema::Part::Builder builder,
                uint64_t chunk_bytes = kChunkBytesMax);

struct DecodedPart {
  engine::TaskPart part;
  std::vector<Incarnation> peers;  // as part.edges
  uint64_t bytes = 0;              // of all its tensors, each counted once
  uint64_t nodes = 0;              // those of functions included, once for each caller
  // What all of these say of themselves: names and texts of attributes, what each output is.
  uint64_t described = 0;
};

// Ops and shapes are checked as the graph is built; what a part as a whole must be like, by
// engine::checkTaskPart().
// Errors: kBadData for what is out of bounds, kBadConfig for what no graph can have; both name the
// node.
DecodedPart decodePart(schema::Part::Reader reader);

}  // namespace dtf::wire
