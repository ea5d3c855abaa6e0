#pragma once

// Parameters that don't lie in an answer as a worker reads them: rounded, or some of their rows.

#include <capnp/list.h>

#include <optional>
#include <string>

#include "common/ps/narrow_gradient.h"
#include "common/ps/row_set.h"
#include "common/tensor/buffer.h"

namespace dtf::wire {

// Of one shard. What it reads is written to an arena, which is made when there is none.
// Owns: memory for rows that are being widened.
// Threads: thread-compatible.
// Errors: kBadData for another size than is due, and, naming the ps, for other rows; the arena is
// as it was then.
class ParameterReader {
 public:
  // `peer`: for errors. `narrows`: the job's parameters are bfloat16 on the way, but for `exact`.
  ParameterReader(std::string peer, ps::GradientLayout layout, uint64_t elements, bool narrows,
                  std::span<const ps::ElementRange> exact);

  bool narrows() const { return narrows_; }
  // All of the shard, rounded. Errors: also kBadConfig where they come as float32, from a ps of an
  // earlier version.
  void readNarrow(capnp::List<capnp::Data>::Reader list, Buffer& arena);
  // Its dense elements and the rows that were `wanted`; the others in the arena stay as they are.
  void readRows(capnp::List<capnp::Data>::Reader list, capnp::List<uint32_t>::Reader counts,
                const ps::RowSet& wanted, Buffer& arena);

 private:
  float* valuesOf(Buffer& arena) const;

  const std::string peer_;
  const ps::GradientLayout layout_;
  std::optional<ps::GradientLayout> alone_;  // its rows; none: it has no sparse slices
  const uint64_t elements_;
  const bool narrows_;
  const ps::NarrowLayout all_, dense_;
  Buffer rows_;
};

}  // namespace dtf::wire
