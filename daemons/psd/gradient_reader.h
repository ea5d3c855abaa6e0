#pragma once

// Gradients as they come over one bulk connection, kept beyond their message.

#include <memory>
#include <vector>

#include "common/ps/narrow_gradient.h"
#include "common/ps/parameter_store.h"
#include "common/wire/ps.capnp.h"
#include "daemons/connection_set.h"
#include "daemons/psd/reused_buffers.h"

namespace dtf::psd {

// Owns: buffers for small gradients, and those that came as bfloat16, used again when nobody uses
// them any more.
// Threads: the connection's loop only.
class GradientReader {
 public:
  // `kept`: so many gradients are held at once, usually.
  GradientReader(daemons::ConnectionRef connection, size_t kept)
      : connection_(std::move(connection)), staging_(kept) {}

  // In a method's own body: the connection is there, and so is the message.
  // Errors: kBadData unless there are `elements`.
  ps::Gradient read(capnp::List<capnp::Data>::Reader chunks, uint64_t elements);
  // A gradient of that layout. What its rows are is for the shard to judge.
  // Errors: kBadData unless there are as many elements as the counts make.
  ps::Gradient read(capnp::List<capnp::Data>::Reader chunks, capnp::List<uint32_t>::Reader rows,
                    const ps::GradientLayout& layout);

  // The same of one that came as bfloat16 (common/ps/narrow_gradient.h).
  ps::Gradient readNarrow(capnp::List<capnp::Data>::Reader chunks,
                          capnp::List<uint32_t>::Reader rows, const ps::GradientLayout& layout,
                          const ps::NarrowLayout& dense);

  // In memory of this process.
  ps::Gradient copyOf(ps::Gradient gradient);

 private:
  const daemons::ConnectionRef connection_;
  ReusedBuffers staging_;
};

}  // namespace dtf::psd
