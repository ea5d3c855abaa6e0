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

// Bounds of a part. Beyond them: an Error with the bound and the node.
inline constexpr uint32_t kNodesMax = 100'000;
inline constexpr uint32_t kNameBytesMax = 4'096;        // of a node, an op, an attribute, a device
inline constexpr uint32_t kAttributesMax = 64;          // of a node
inline constexpr uint32_t kAttributeBytesMax = 16'384;  // of a text
inline constexpr uint32_t kInputsMax = 65'536;          // of a node, of each kind
inline constexpr uint32_t kDevicesMax = 256;
inline constexpr uint32_t kEdgesMax = 1'000'000;  // of a plan
// Of all tensors of a part together, each counted once.
inline constexpr uint64_t kPartBytesMax = uint64_t{64} << 30;

// The processes of a session, for the other end of an edge.
using Processes = std::map<TaskId, Incarnation>;

// `stream` will write the message, and keeps `part` until then. `processes` contains the peer of
// every edge.
void encodePart(const std::shared_ptr<const engine::TaskPart>& part, const Processes& processes,
                net::MessageStream& stream, schema::Part::Builder builder,
                uint64_t chunk_bytes = kChunkBytesMax);

struct DecodedPart {
  engine::TaskPart part;
  std::vector<Incarnation> peers;  // as part.edges
  uint64_t bytes = 0;              // of all its tensors, each counted once
  uint64_t nodes = 0;              // with the nodes of functions, once for each caller
  // The bytes that describe all nodes: names and texts of attributes, and the outputs.
  uint64_t described = 0;
};

// Building the graph checks ops and shapes; engine::checkTaskPart() checks the part as a whole.
// Errors: kBadData for a value out of bounds, kBadConfig for an impossible graph; both name the
// node.
DecodedPart decodePart(schema::Part::Reader reader);

}  // namespace dtf::wire
