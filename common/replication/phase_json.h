#pragma once

// Phases and stragglers as JSON, for `dtf-launch status` and the summary.

#include <optional>

#include "common/base/json.h"
#include "common/replication/phase_times.h"

namespace dtf::replication {

// Returns {"data": 0.1, "compute": 4.2, ...}, in milliseconds.
Json phasesJson(const PhaseTimes& times);

// Returns {"worker": "worker/1", "phase": "compute", "excess_ms": 4.1}; null for none.
Json stragglerJson(const std::optional<Straggler>& straggler);

}  // namespace dtf::replication
