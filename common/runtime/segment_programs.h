#pragma once

// The segments of a compiled step, as programs of its device. Internal, as step_body.h.

#include <cstddef>
#include <optional>

#include "common/runtime/step_body.h"

namespace dtf::runtime {

// Fills `step.segments`, and what listeners are told when: where gradients are told of early, also
// the loss ends a segment. `fetches`: the last launch that writes something that is fetched; none:
// none does.
// Errors: those of Device::prepare().
void makeSegments(StepBody& step, const TransferOptions& options, std::optional<size_t> fetches);

}  // namespace dtf::runtime
