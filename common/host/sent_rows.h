#pragma once

// The rows that a worker's next batch looks up, in the form in which a reply contains them.

#include <memory>
#include <utility>

#include "common/arena/codecs/rows.h"
#include "common/arena/parameter_version.h"
#include "common/arena/row_set.h"
#include "common/host/reused_buffers.h"
#include "common/tensor/buffer.h"
#include "common/wire/arena_codec.h"

namespace dtf::host {

// Gathers and encodes rows for the replies of one session.
// Owns: buffers that are reused when no message refers to them.
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
  const arena::RowsCodec* const alone_;  // null: the shard has no sparse slices
  Buffer gathered_;                      // rows before they are encoded
  ReusedBuffers buffers_{2};             // a session has two calls at most
};

}  // namespace dtf::host
