#pragma once

// The parameters of a shard as they travel where `replication.transfer_dtype` is bfloat16.

#include <memory>

#include "common/ps/narrow_gradient.h"
#include "common/ps/snapshot.h"
#include "common/tensor/buffer.h"
#include "daemons/psd/reused_buffers.h"

namespace dtf::psd {

// The workers of a sync step are answered with the same parameters: they are rounded once, for the
// first.
// Owns: the last, and buffers that are used again when no message refers to them any more; all
// shared with those.
// Threads: the data loop only.
class NarrowParameters {
 public:
  // Of the parameters what `layout`, of all or of the first of them, has: in the first
  // layout.bytes() of it.
  std::shared_ptr<const Buffer> of(const std::shared_ptr<const ps::Snapshot>& parameters,
                                   const ps::NarrowLayout& layout);

 private:
  std::weak_ptr<const ps::Snapshot> newest_;  // that `current_` has
  std::shared_ptr<Buffer> current_;
  uint64_t current_bytes_ = 0;
  ReusedBuffers buffers_{4};
};

}  // namespace dtf::psd
