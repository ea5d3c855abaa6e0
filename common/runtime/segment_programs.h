#pragma once

// The segments of a compiled step, as programs of its device. Internal, like step_body.h.

#include <cstddef>
#include <optional>

#include "common/runtime/step_body.h"

namespace dtf::runtime {

// Fills `step.segments`, and decides when listeners are called: if gradients are reported early,
// the loss ends a segment, too. `fetches`: the last launch that writes a fetched tensor, if any.
// Errors: as Device::prepare().
void makeSegments(StepBody& step, const TransferOptions& options, std::optional<size_t> fetches);

}  // namespace dtf::runtime
