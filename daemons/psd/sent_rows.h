#pragma once

// The rows that a worker's next batch looks up, as its answer has them.

#include <memory>
#include <optional>

#include "common/ps/row_set.h"
#include "common/ps/snapshot.h"
#include "common/tensor/buffer.h"
#include "common/wire/arena_codec.h"
#include "daemons/psd/reused_buffers.h"

namespace dtf::psd {

// Of one session.
// Owns: buffers that are used again when no message refers to them any more.
// Threads: the connection's loop only.
class SentRows {
 public:
  explicit SentRows(ps::GradientLayout layout) : layout_(std::move(layout)) {
    if (!layout_.sparse().empty()) alone_ = layout_.rowsAlone();
  }

  // A set without fault that is not whole: their ids and values, as a gradient of
  // layout.rowsAlone() has them. `narrows`: as bfloat16 (ps/narrow_gradient.h).
  wire::ArenaPart of(const ps::Snapshot& parameters, const ps::RowSet& rows, bool narrows);

 private:
  uint64_t roomFor(uint64_t bytes) const;

  const ps::GradientLayout layout_;
  std::optional<ps::GradientLayout> alone_;  // none: no set of rows has no fault
  Buffer wide_;
  ReusedBuffers buffers_{2};  // a session has two calls at most
};

}  // namespace dtf::psd
