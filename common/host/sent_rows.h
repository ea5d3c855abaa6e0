#pragma once

// The rows that a worker's next batch looks up, as its answer has them.

#include <memory>
#include <utility>

#include "common/arena/codecs/rows.h"
#include "common/arena/parameter_version.h"
#include "common/arena/row_set.h"
#include "common/host/reused_buffers.h"
#include "common/tensor/buffer.h"
#include "common/wire/arena_codec.h"

namespace dtf::host {

// Of one session.
// Owns: buffers that are used again when no message refers to them any more.
// Threads: the connection's loop only.
class SentRows {
 public:
  // `layout`: of the shard. `alone`: ShardCodecs::rowsAlone(), which must outlive this.
  SentRows(arena::GradientLayout layout, const arena::RowsCodec* alone)
      : layout_(std::move(layout)), alone_(alone) {}

  // Returns the ids and values of the rows, encoded. `rows` has no fault and is not whole.
  wire::ArenaPart of(const arena::ParameterVersion& parameters, const arena::RowSet& rows);

 private:
  uint64_t roomFor(uint64_t bytes) const;

  const arena::GradientLayout layout_;
  const arena::RowsCodec* const alone_;  // null: every set of rows has a fault
  Buffer gathered_;                      // what isn't sent as it is
  ReusedBuffers buffers_{2};             // a session has two calls at most
};

}  // namespace dtf::host
