#pragma once

// Reads gradients from the messages of one bulk connection, and keeps them when the message is
// gone.

#include <memory>
#include <vector>

#include "common/arena/codec.h"
#include "common/arena/gradient_layout.h"
#include "common/host/reused_buffers.h"
#include "common/optimizer/parameter_store.h"
#include "common/wire/connection_set.h"
#include "common/wire/ps.capnp.h"

namespace dtf::host {

// Owns: buffers for small and for decoded gradients, reused when their gradient has no user left.
// Threads: the connection's loop only.
class GradientReader {
 public:
  // `kept`: the number of gradients that are usually in use at once.
  GradientReader(wire::ConnectionRef connection, size_t kept)
      : connection_(std::move(connection)), staging_(kept) {}

  // Reads a dense gradient. Call it in the body of an RPC method, where the connection and the
  // message still exist.
  // Errors: kBadData unless `chunks` hold `elements` values.
  arena::Gradient read(capnp::List<capnp::Data>::Reader chunks, uint64_t elements);
  // Reads a gradient of `layout`; `rows`: its row counts. The shard checks the ids of the rows.
  // Errors: kBadData unless the counts fit the layout, and `chunks` hold as many elements as they
  // give.
  arena::Gradient read(capnp::List<capnp::Data>::Reader chunks, capnp::List<uint32_t>::Reader rows,
                       const arena::GradientLayout& layout);

  // Reads a gradient encoded with `codec`, which is ShardCodecs::gradient() of `layout`.
  // Errors: likewise.
  arena::Gradient read(capnp::List<capnp::Data>::Reader chunks, capnp::List<uint32_t>::Reader rows,
                       const arena::GradientLayout& layout, const arena::Codec& codec);

 private:
  const wire::ConnectionRef connection_;
  ReusedBuffers staging_;
};

}  // namespace dtf::host
