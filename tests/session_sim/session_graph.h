#pragma once

// The graph of a client of the simulated world.

#include <cstdint>
#include <string>

#include "common/graph/graph.h"
#include "tests/session_sim/session_plan.h"

namespace dtf::sim {

// Shape of the variable "table".
inline constexpr int64_t kRows = 6, kColumns = 3;

// The graph of a client. Its step goes from worker/0 by way of ps/0 to the last worker, and ends on
// the last ps; beside it a variable of ps/0 is read, sent to worker/0 and assigned. The look-ups
// are a plan of their own, and so is each operation on the queue "jobs" of ps/0. `container`: of
// the variables and the queue.
graph::Graph graphOf(const SessionPlan& plan, const std::string& container);

}  // namespace dtf::sim
