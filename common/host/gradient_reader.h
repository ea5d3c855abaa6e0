#pragma once

// Gradients as they come over one bulk connection, kept beyond their message.

#include <memory>
#include <vector>

#include "common/arena/codec.h"
#include "common/arena/gradient_layout.h"
#include "common/host/reused_buffers.h"
#include "common/optimizer/parameter_store.h"
#include "common/wire/connection_set.h"
#include "common/wire/ps.capnp.h"

namespace dtf::host {

// Owns: buffers for small gradients, and for decoded ones, used again when nobody uses them any
// more. Threads: the connection's loop only.
class GradientReader {
 public:
  // `kept`: so many gradients are held at once, usually.
  GradientReader(wire::ConnectionRef connection, size_t kept)
      : connection_(std::move(connection)), staging_(kept) {}

  // In a method's own body: the connection is there, and so is the message.
  // Errors: kBadData unless there are `elements`.
  arena::Gradient read(capnp::List<capnp::Data>::Reader chunks, uint64_t elements);
  // A gradient of that layout. What its rows are is for the shard to judge.
  // Errors: kBadData unless there are as many elements as the counts make.
  arena::Gradient read(capnp::List<capnp::Data>::Reader chunks, capnp::List<uint32_t>::Reader rows,
                       const arena::GradientLayout& layout);

  // Likewise a gradient that `codec` has encoded, ShardCodecs::gradient() of that layout.
  arena::Gradient read(capnp::List<capnp::Data>::Reader chunks, capnp::List<uint32_t>::Reader rows,
                       const arena::GradientLayout& layout, const arena::Codec& codec);

  // In memory of this process.
  arena::Gradient copyOf(arena::Gradient gradient);

 private:
  const wire::ConnectionRef connection_;
  ReusedBuffers staging_;
};

}  // namespace dtf::host
