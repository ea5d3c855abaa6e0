#pragma once

// Reads parameters that a worker can't use in place in the reply: encoded ones, or single rows.

#include <capnp/list.h>

#include <string>
#include <utility>

#include "common/arena/gradient_layout.h"
#include "common/arena/row_set.h"
#include "common/arena/shard_codecs.h"
#include "common/tensor/buffer.h"

namespace dtf::wire {

// Writes the parameters of one shard to an arena, which it allocates if there is none.
// Owns: memory for rows that are being decoded.
// Borrows: `codecs` (must outlive this).
// Threads: thread-compatible.
// Errors: kBadData for a wrong size and, with the name of the ps, for other rows than the wanted
// ones. The arena then keeps its values.
class ParameterReader {
 public:
  // `peer`: for errors.
  ParameterReader(std::string peer, arena::GradientLayout layout, const arena::ShardCodecs& codecs)
      : peer_(std::move(peer)), layout_(std::move(layout)), codecs_(codecs) {}

  // Reads all parameters of the shard.
  // Errors: also kBadConfig if they are float32 but another form is due, from a ps of an earlier
  // version.
  void readWhole(capnp::List<capnp::Data>::Reader list, Buffer& arena);
  // Reads a change of the dense elements of `base`, which may be those in the arena, and behind
  // them all rows.
  void readChange(capnp::List<capnp::Data>::Reader list, const float* base, Buffer& arena);
  // Reads the dense elements and the `wanted` rows. The other rows in the arena keep their values.
  // `base`: the dense elements came as a change of it; null: as they are.
  void readRows(capnp::List<capnp::Data>::Reader list, capnp::List<uint32_t>::Reader counts,
                const arena::RowSet& wanted, const float* base, Buffer& arena);

 private:
  float* valuesOf(Buffer& arena) const;

  const std::string peer_;
  const arena::GradientLayout layout_;
  const arena::ShardCodecs& codecs_;
  Buffer rows_;
};

}  // namespace dtf::wire
