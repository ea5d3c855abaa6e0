#pragma once

// Parameters that don't lie in an answer as a worker reads them: encoded, or some of their rows.

#include <capnp/list.h>

#include <string>
#include <utility>

#include "common/arena/gradient_layout.h"
#include "common/arena/row_set.h"
#include "common/arena/shard_codecs.h"
#include "common/tensor/buffer.h"

namespace dtf::wire {

// Of one shard. What it reads is written to an arena, which is made when there is none.
// Owns: memory for rows that are being decoded.
// Borrows: `codecs` (must outlive this).
// Threads: thread-compatible.
// Errors: kBadData for another size than is due, and, naming the ps, for other rows; the arena is
// as it was then.
class ParameterReader {
 public:
  // `peer`: for errors.
  ParameterReader(std::string peer, arena::GradientLayout layout, const arena::ShardCodecs& codecs)
      : peer_(std::move(peer)), layout_(std::move(layout)), codecs_(codecs) {}

  // All of the shard. Errors: also kBadConfig where they come as float32 and are due in another
  // form, from a ps of an earlier version.
  void readWhole(capnp::List<capnp::Data>::Reader list, Buffer& arena);
  // Its dense elements and the rows that were `wanted`; the others in the arena stay as they are.
  void readRows(capnp::List<capnp::Data>::Reader list, capnp::List<uint32_t>::Reader counts,
                const arena::RowSet& wanted, Buffer& arena);

 private:
  float* valuesOf(Buffer& arena) const;

  const std::string peer_;
  const arena::GradientLayout layout_;
  const arena::ShardCodecs& codecs_;
  Buffer rows_;
};

}  // namespace dtf::wire
